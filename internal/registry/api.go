package registry

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// APIWrite is one change of one API.
type APIWrite struct {
	Act    Act
	API    string // its identifier or name; empty to create one
	Change APIChange
}

// APIChange is what a request says about an API; nil is not said. Texts are as they were sent.
type APIChange struct {
	ID                                          *string // may be repeated, not changed
	Name, RequestHost, RequestPath, UpstreamURL *string
	StripPath, PreserveHost                     *bool

	Unreadable []Fault // what was said in a way that cannot be read
}

// API reads a change of an API.
func (v Values) API() APIChange {
	r := reader{values: v}
	c := APIChange{
		ID: r.raw("id"), Name: r.text("name", notText), RequestHost: r.text("request_host", notText), RequestPath: r.text("request_path", notText),
		UpstreamURL: r.text("upstream_url", notURL), StripPath: r.flag("strip_request_path"), PreserveHost: r.flag("preserve_host"),
	}
	r.onlyKnown("id", "created_at", "name", "request_host", "request_path", "strip_request_path", "preserve_host", "upstream_url")
	c.Unreadable = r.faults
	return c
}

// API returns the API with the identifier or, if ref is none, with the name.
func (r *Registry) API(ctx context.Context, ref string) (*freshet.API, error) {
	return found(r.store.API(ctx, ref))
}

// APIs lists registered APIs, the oldest first. The platform's own are left out unless asked for: scripts that tidy up what they
// find must not find them.
func (r *Registry) APIs(ctx context.Context, f APIFilter, p Page) (Listing[freshet.API], error) {
	list, err := r.store.APIs(ctx, f, p.cursor())
	return pageOf(p, list, func(a *freshet.API) string { return a.ID }, err)
}

// WriteAPI implements Writer. It returns the API as it is now; nil for one that was deleted.
func (r *Registry) WriteAPI(ctx context.Context, w APIWrite) (*freshet.API, error) {
	switch {
	case r.writer != nil:
		return r.writer.WriteAPI(ctx, w)
	case w.Act == Create:
		return r.createAPI(ctx, &w.Change)
	case w.Act == Delete:
		return nil, r.deleteAPI(ctx, w.API)
	}
	return r.saveAPI(ctx, &w)
}

func (r *Registry) createAPI(ctx context.Context, c *APIChange) (*freshet.API, error) {
	made := &freshet.API{ID: freshet.NewID(), CreatedAt: r.now()}
	if err := c.apply(made, Create); err != nil {
		return nil, err
	}
	if err := r.barred.check(made); err != nil {
		return nil, err
	}
	return found(made, r.register(ctx, func(tx *store.Tx, revision int64) error {
		if err := checkAPIFree(tx, made); err != nil {
			return err
		}
		return tx.CreateAPI(made, revision)
	}))
}

func (r *Registry) saveAPI(ctx context.Context, w *APIWrite) (*freshet.API, error) {
	var saved *freshet.API
	err := r.register(ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.API(w.API); err != nil {
			return err
		}
		if saved.BuiltIn {
			return errBuiltIn
		}
		if err := sameID(w.Change.ID, saved.ID); err != nil {
			return err
		}
		if w.Act == Replace {
			saved = &freshet.API{ID: saved.ID, CreatedAt: saved.CreatedAt}
		}
		if err := w.Change.apply(saved, w.Act); err != nil {
			return err
		}
		if err := r.barred.check(saved); err != nil {
			return err
		}
		if err := checkAPIFree(tx, saved); err != nil {
			return err
		}
		return tx.SaveAPI(saved, revision)
	})
	return found(saved, err)
}

var errBuiltIn = &Error{Kind: freshet.MethodNotAllowed, Msg: "Method not allowed: this API is built in; only its plugins can be changed"}

func (r *Registry) deleteAPI(ctx context.Context, ref string) error {
	return r.unregister(ctx, func(tx *store.Tx) error {
		old, err := tx.API(ref)
		if err != nil {
			return err
		}
		if old.BuiltIn {
			return errBuiltIn
		}
		return tx.DeleteAPI(old.ID)
	})
}

// sameID lets a request repeat the identifier of what it changes, as scripts do that send back what they read.
func sameID(given *string, id string) error {
	f := faults{}
	f.unchanged("id", given, id)
	return f.err(freshet.Invalid)
}

const (
	needHostOrPath = "At least a 'request_host' or a 'request_path' must be specified"
	notUnreserved  = "must only contain alphanumeric and '., -, _, ~' characters"
	notURL         = "is not a url"
)

var (
	apiName  = regexp.MustCompile(`^[\w.\-~]*$`)
	apiPath  = regexp.MustCompile(`^/[\w.\-~/]*$`)
	hostPart = regexp.MustCompile(`[a-zA-Z0-9-]`)
	unnamed  = regexp.MustCompile(`[^\w.\-~]`)
)

// apply puts the change into an API and checks the outcome.
func (c *APIChange) apply(to *freshet.API, act Act) error {
	f := faults(slices.Clone(c.Unreadable))
	f.text("name", c.Name, &to.Name)
	f.text("request_host", c.RequestHost, &to.RequestHost)
	f.text("request_path", c.RequestPath, &to.RequestPath)
	flag(c.StripPath, &to.StripPath)
	flag(c.PreserveHost, &to.PreserveHost)
	c.applyUpstream(to, act, &f)

	to.RequestHost = strings.ToLower(to.RequestHost)
	if to.RequestHost == "" && to.RequestPath == "" {
		f.need(act, needHostOrPath, map[string]*string{"request_host": c.RequestHost, "request_path": c.RequestPath})
	}
	checkHost(to.RequestHost, &f)
	to.RequestPath = checkPath(to.RequestPath, &f)
	if to.Name == "" {
		to.Name = defaultName(to)
	}
	if !apiName.MatchString(to.Name) {
		f.add("name", notUnreserved)
	}
	return f.err(freshet.Invalid)
}

// need is a fault of several fields, of which one is needed. An update is told of those only that it would take away.
func (f *faults) need(act Act, text string, fields map[string]*string) {
	for name, given := range fields {
		if act != Update || given != nil {
			f.say(name, "%s", text)
		}
	}
}

func (c *APIChange) applyUpstream(to *freshet.API, act Act, f *faults) {
	const field = "upstream_url"
	if act != Update && (c.UpstreamURL == nil || *c.UpstreamURL == "") {
		f.add(field, "is required")
		return
	}
	if c.UpstreamURL == nil {
		return
	}
	text, ok := clean(*c.UpstreamURL)
	u, err := url.Parse(text)
	if !ok || err != nil || u.Scheme == "" || u.Hostname() == "" || !isPort(u.Port()) {
		f.add(field, notURL)
		return
	}
	if scheme := strings.ToLower(u.Scheme); scheme != "http" && scheme != "https" {
		f.say(field, "Supported protocols are HTTP and HTTPS")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		f.add(field, "must not contain credentials, a query or a fragment")
	}
	to.UpstreamURL = text
}

func isPort(text string) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

func checkHost(host string, f *faults) {
	if host == "" {
		return
	}
	const field = "request_host"
	if !hostPart.MatchString(host) || strings.ContainsAny(host, " \t\r\n/") {
		f.add(field, invalid)
	}
	switch stars := strings.Count(host, "*"); {
	case stars > 1:
		f.say(field, "Only one wildcard is allowed: %s", host)
	case stars == 1 && !strings.HasPrefix(host, "*.") && (!strings.HasSuffix(host, ".*") || len(host) < 3):
		f.say(field, "Invalid wildcard placement: %s", host)
	}
}

// checkPath returns the path with one leading slash and no trailing one.
func checkPath(path string, f *faults) string {
	if path == "" {
		return ""
	}
	path = "/" + strings.Trim(path, "/")
	const field = "request_path"
	if !apiPath.MatchString(path) {
		f.add(field, "must only contain alphanumeric and '., -, _, ~, /' characters")
		return path
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "." || segment == ".." || segment == "" && path != "/" {
			f.add(field, "is invalid: %s", path)
		}
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

// reserved are the platform's paths: nothing can be registered at or below them.
var reserved = []string{"/api/v1", "/api/latest", "/publish/v1", "/publish/latest", "/console"}

// reservedExactly cannot be registered either, but what is below them can. The store has them as built-in APIs.
var reservedExactly = []string{"/api", "/publish"}

func isReserved(path string) bool {
	return slices.Contains(reservedExactly, path) ||
		slices.ContainsFunc(reserved, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}

// checkAPIFree refuses what another API has. It runs inside the change, which keeps others from taking it meanwhile.
func checkAPIFree(tx *store.Tx, a *freshet.API) error {
	f := faults{}
	for _, c := range []struct{ column, value string }{
		{"name", a.Name}, {"request_host", a.RequestHost}, {"request_path", a.RequestPath},
	} {
		_, err := tx.APIWith(c.column, c.value, a.ID)
		if err := f.taken(c.column, c.value, err); err != nil {
			return err
		}
	}
	if isReserved(a.RequestPath) {
		f.add("request_path", alreadyExists, a.RequestPath)
	}
	return f.err(freshet.Conflict)
}
