package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// apiBody is an API as the dialect shows it.
type apiBody struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	RequestHost  string `json:"request_host,omitempty"`
	RequestPath  string `json:"request_path,omitempty"`
	StripPath    bool   `json:"strip_request_path"`
	PreserveHost bool   `json:"preserve_host"`
	UpstreamURL  string `json:"upstream_url"`
	BuiltIn      bool   `json:"built_in,omitempty"`
	CreatedAt    int64  `json:"created_at"`
}

func showAPI(a *freshet.API) apiBody {
	b := apiBody{a.ID, a.Name, a.RequestHost, a.RequestPath, a.StripPath, a.PreserveHost, a.UpstreamURL, a.BuiltIn, 0}
	if !a.CreatedAt.IsZero() {
		b.CreatedAt = a.CreatedAt.UnixMilli()
	}
	return b
}

func apiID(a *freshet.API) string { return a.ID }

// listAPIs leaves the platform's own out unless asked for: scripts that tidy up what they find must not find them.
func (a *Administration) listAPIs(c *call) (reply, error) {
	var f store.APIFilter
	builtIn := faults{}
	c.params.flag("built_in", &f.BuiltIn, builtIn)
	if err := builtIn.err(); err != nil {
		return reply{}, err
	}
	delete(c.params, "built_in")
	page, err := c.filters(map[string]*string{"id": &f.ID, "name": &f.Name, "request_host": &f.RequestHost,
		"request_path": &f.RequestPath, "upstream_url": &f.UpstreamURL})
	if err != nil {
		return reply{}, err
	}
	list, err := a.store.APIs(c.ctx, f, page)
	if err != nil {
		return reply{}, err
	}
	return pageOf(c, page, list, apiID, showAPI)
}

func (a *Administration) showAPI(c *call) (reply, error) {
	found, err := a.store.API(c.ctx, c.vars[0])
	if err != nil {
		return reply{}, err
	}
	return shown(showAPI(found))
}

func (a *Administration) createAPI(c *call) (reply, error) {
	made := &freshet.API{ID: freshet.NewID(), CreatedAt: a.now()}
	if err := c.params.readAPI(made, whole); err != nil {
		return reply{}, err
	}
	if err := a.barred.check(made); err != nil {
		return reply{}, err
	}
	err := a.register(c.ctx, func(tx *store.Tx, revision int64) error {
		if err := checkFree(tx, made); err != nil {
			return err
		}
		return tx.CreateAPI(made, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return created(showAPI(made))
}

// putAPI replaces the API that the body names by id, or creates one.
func (a *Administration) putAPI(c *call) (reply, error) {
	old, err := existing(c, a.store.API)
	if err != nil {
		return reply{}, err
	}
	if old == nil {
		return a.createAPI(c)
	}
	return a.saveAPI(c, old.ID, whole)
}

func (a *Administration) replaceAPI(c *call) (reply, error) { return a.saveAPI(c, c.vars[0], whole) }

func (a *Administration) patchAPI(c *call) (reply, error) { return a.saveAPI(c, c.vars[0], partial) }

func (a *Administration) saveAPI(c *call, ref string, e extent) (reply, error) {
	var saved *freshet.API
	err := a.register(c.ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.API(ref); err != nil {
			return err
		}
		if saved.BuiltIn {
			return errBuiltIn
		}
		if err := c.params.sameID(saved.ID); err != nil {
			return err
		}
		if e == whole {
			saved = &freshet.API{ID: saved.ID, CreatedAt: saved.CreatedAt}
		}
		if err := c.params.readAPI(saved, e); err != nil {
			return err
		}
		if err := a.barred.check(saved); err != nil {
			return err
		}
		if err := checkFree(tx, saved); err != nil {
			return err
		}
		return tx.SaveAPI(saved, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return shown(showAPI(saved))
}

var errBuiltIn = refuse(http.StatusMethodNotAllowed, message{"Method not allowed: this API is built in; only its plugins can be changed"})

func (a *Administration) deleteAPI(c *call) (reply, error) {
	return gone(a.unregister(c.ctx, func(tx *store.Tx) error {
		found, err := tx.API(c.vars[0])
		if err != nil {
			return err
		}
		if found.BuiltIn {
			return errBuiltIn
		}
		return tx.DeleteAPI(found.ID)
	}))
}

// extent is how much of a thing a request describes.
type extent int

const (
	whole   extent = iota // what is not given has its default
	partial               // what is not given stays as it is
)

const (
	needHostOrPath = "At least a 'request_host' or a 'request_path' must be specified"
	notUnreserved  = "name must only contain alphanumeric and '., -, _, ~' characters"
)

var (
	apiName  = regexp.MustCompile(`^[\w.\-~]*$`)
	apiPath  = regexp.MustCompile(`^/[\w.\-~/]*$`)
	hostPart = regexp.MustCompile(`[a-zA-Z0-9-]`)
	unnamed  = regexp.MustCompile(`[^\w.\-~]`)
)

// readAPI puts what the request says into to and checks the outcome.
func (p params) readAPI(to *freshet.API, e extent) error {
	f := faults{}
	p.text("name", &to.Name, f)
	p.text("request_host", &to.RequestHost, f)
	p.text("request_path", &to.RequestPath, f)
	p.flag("strip_request_path", &to.StripPath, f)
	p.flag("preserve_host", &to.PreserveHost, f)
	p.readUpstream(to, e, f)
	p.onlyKnown(f, "id", "created_at", "name", "request_host", "request_path", "strip_request_path", "preserve_host", "upstream_url")

	to.RequestHost = strings.ToLower(to.RequestHost)
	if to.RequestHost == "" && to.RequestPath == "" {
		p.need(f, e, needHostOrPath, "request_host", "request_path")
	}
	checkHost(to.RequestHost, f)
	to.RequestPath = checkPath(to.RequestPath, f)
	if to.Name == "" {
		to.Name = defaultName(to)
	}
	if !apiName.MatchString(to.Name) {
		f.add("name", notUnreserved)
	}
	return f.err()
}

func (p params) readUpstream(to *freshet.API, e extent, f faults) {
	const field = "upstream_url"
	if v, ok := p[field]; e == whole && (!ok || v == nil || v == "") {
		f.add(field, "upstream_url is required")
		return
	}
	if !p.given(field) {
		return
	}
	text, ok := readText(p[field])
	raw, _ := text.(string)
	u, err := url.Parse(raw)
	if !ok || err != nil || u.Scheme == "" || u.Hostname() == "" || !isPort(u.Port()) {
		f.add(field, "upstream_url is not a url")
		return
	}
	if scheme := strings.ToLower(u.Scheme); scheme != "http" && scheme != "https" {
		f.add(field, "Supported protocols are HTTP and HTTPS")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		f.add(field, "upstream_url must not contain credentials, a query or a fragment")
	}
	to.UpstreamURL = raw
}

func isPort(text string) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

func checkHost(host string, f faults) {
	if host == "" {
		return
	}
	const field = "request_host"
	if !hostPart.MatchString(host) || strings.ContainsAny(host, " \t\r\n/") {
		f.add(field, "request_host has an invalid value")
	}
	switch stars := strings.Count(host, "*"); {
	case stars > 1:
		f.add(field, "Only one wildcard is allowed: %s", host)
	case stars == 1 && !strings.HasPrefix(host, "*.") && (!strings.HasSuffix(host, ".*") || len(host) < 3):
		f.add(field, "Invalid wildcard placement: %s", host)
	}
}

// checkPath returns the path with one leading slash and no trailing one.
func checkPath(path string, f faults) string {
	if path == "" {
		return ""
	}
	path = "/" + strings.Trim(path, "/")
	const field = "request_path"
	switch {
	case !apiPath.MatchString(path):
		f.add(field, "request_path must only contain alphanumeric and '., -, _, ~, /' characters")
	case strings.Contains(path, "//"), climbs(path), strings.Contains(path+"/", "/./"):
		f.add(field, "request_path is invalid: %s", path)
	}
	return path
}

// defaultName is made from the host or the path.
func defaultName(a *freshet.API) string {
	name := a.RequestHost
	if name == "" && a.RequestPath != "" {
		name = a.RequestPath[1:]
	}
	if name == "" {
		return "root"
	}
	return unnamed.ReplaceAllString(name, "-")
}

// sameID lets a request repeat the identifier of what it changes, as scripts do that send back what they read.
func (p params) sameID(id string) error {
	if given, ok := p["id"]; ok && given != id {
		return faults{"id": "id cannot be updated"}.err()
	}
	return nil
}

// existing returns what the body's id names, or nil if there is no such thing or no id.
func existing[T any](c *call, find func(context.Context, string) (*T, error)) (*T, error) {
	id, _ := c.params["id"].(string)
	if !freshet.IsID(id) {
		return nil, nil
	}
	found, err := find(c.ctx, id)
	if err != nil && freshet.KindOf(err) == freshet.NotFound {
		return nil, nil //nolint:nilerr // it is to be created
	}
	return found, err
}

// reserved are the platform's paths: nothing can be registered at or below them.
var reserved = []string{"/api/v1", "/api/latest", "/publish/v1", "/publish/latest", "/console"}

// reservedExactly cannot be registered either, but what is below them can. The store has them as built-in APIs.
var reservedExactly = []string{"/api", "/publish"}

func isReserved(path string) bool {
	for _, r := range reservedExactly {
		if path == r {
			return true
		}
	}
	for _, r := range reserved {
		if path == r || strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}

// checkFree refuses what another API has. It runs inside the change, which keeps others from taking it meanwhile.
func checkFree(tx *store.Tx, a *freshet.API) error {
	f := faults{}
	for _, c := range []struct{ column, value string }{
		{"name", a.Name}, {"request_host", a.RequestHost}, {"request_path", a.RequestPath},
	} {
		_, err := tx.APIWith(c.column, c.value, a.ID)
		if err := taken(f, c.column, c.value, err); err != nil {
			return err
		}
	}
	if isReserved(a.RequestPath) {
		f.add("request_path", alreadyExists, "request_path", a.RequestPath)
	}
	return f.errWith(http.StatusConflict)
}

const alreadyExists = "%s already exists with value '%s'"

// taken adds a fault if a search found something.
func taken(f faults, field, value string, found error) error {
	if found == nil {
		f.add(field, alreadyExists, field, value)
		return nil
	}
	if freshet.KindOf(found) == freshet.NotFound {
		return nil
	}
	return fmt.Errorf("look for %s: %w", field, found)
}
