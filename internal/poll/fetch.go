package poll

import (
	"context"
	"crypto/tls"
	"hash/maphash"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// request is one poll of one endpoint.
type request struct {
	endpoint     *endpoint
	etag         string // validators of what we have; empty for a full request
	lastModified string

	responded func(status int) // told of every response, also of redirects; nil is nobody
}

// response is what a target said. Failures are errors of the Source kinds.
type response struct {
	notModified  bool
	body         []byte
	etag         string
	lastModified string
}

// endpoint is a target, prepared for many requests: the URL, its host and the credentials. It never changes.
type endpoint struct {
	url          *url.URL
	host         string // with its port: the one whose budget and connections are used
	credentials  freshet.Credentials
	appID        string
	allowedHosts []string
}

func newEndpoint(topic *freshet.Topic, allowedHosts []string) (*endpoint, error) {
	u, err := parseExact(topic.Publisher.URL)
	if err != nil {
		return nil, err
	}
	return &endpoint{
		url: u, host: authority(u), credentials: topic.Publisher.Credentials, appID: topic.AppID, allowedHosts: allowedHosts,
	}, nil
}

// same reports whether both ask the same in the same way.
func (t *endpoint) same(other *endpoint) bool {
	return *t.url == *other.url && sameCredentials(&t.credentials, &other.credentials) && slices.Equal(t.allowedHosts, other.allowedHosts)
}

func sameCredentials(a, b *freshet.Credentials) bool {
	if !slices.Equal(a.Headers, b.Headers) || (a.OAuth2 == nil) != (b.OAuth2 == nil) {
		return false
	}
	if a.OAuth2 == nil {
		return true
	}
	x, y := a.OAuth2, b.OAuth2
	return x.TokenURL == y.TokenURL && x.ClientID == y.ClientID && x.ClientSecret == y.ClientSecret && slices.Equal(x.Scopes, y.Scopes)
}

// parseExact parses a URL so that the target gets path and query as they were written: not even escapes that mean the
// same are changed, except for what cannot be part of a request line.
func parseExact(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, freshet.Errorf(freshet.Invalid, "The target URL is not a valid URL") // the cause quotes the URL
	}
	_, rest, _ := strings.Cut(raw, "://")
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	path := "/"
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		path = escapeLine(rest[slash:])
	}
	u.RawQuery = escapeLine(query)
	if !strings.HasPrefix(path, "//") { // net/url would take that for a host
		u.Opaque = path
	}
	return u, nil
}

const upperHex = "0123456789ABCDEF"

// escapeLine escapes the bytes that a request line cannot have.
func escapeLine(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// authority is the host and port that a URL leads to.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Limits of a request.
const (
	maxRedirects = 5
	maxHeader    = 64 << 10
	dialTimeout  = 5 * time.Second

	// Transports have a lock each that every request takes; hosts are spread over several.
	numTransports  = 16
	idlePerHost    = 256 // enough for thousands of requests a second to one host without new connections
	idleInAll      = 8192
	idleConnection = 60 * time.Second
	ioBuffer       = 1 << 10 // for each direction of a connection; long bodies go past it
)

// clientOptions are the settings of a client.
type clientOptions struct {
	version  string
	guarded  bool // keep away from internal addresses
	timeout  time.Duration
	maxBody  int64
	tls      *tls.Config   // nil: the system's roots
	resolver *net.Resolver // nil: the system's
}

// client asks targets over HTTP. It is safe for concurrent use.
type client struct {
	clientOptions
	transports [numTransports]*http.Transport
	seed       maphash.Seed
	tokens     *tokens
}

func newClient(o clientOptions) *client {
	c := &client{clientOptions: o, seed: maphash.MakeSeed(), tokens: newTokens()}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Resolver: o.resolver}
	if o.guarded {
		dialer.Control = newGuard()
	}
	for i := range c.transports {
		c.transports[i] = &http.Transport{
			Proxy:                  nil, // a proxy would dial where the guard cannot look
			DialContext:            dialer.DialContext,
			TLSClientConfig:        o.tls.Clone(),
			TLSHandshakeTimeout:    dialTimeout,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // we decode, to bound what comes out
			MaxIdleConns:           idleInAll / numTransports,
			MaxIdleConnsPerHost:    idlePerHost,
			IdleConnTimeout:        idleConnection,
			MaxResponseHeaderBytes: maxHeader,
			ReadBufferSize:         ioBuffer,
			WriteBufferSize:        ioBuffer,
		}
	}
	return c
}

func (c *client) close() {
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

func (c *client) transport(host string) *http.Transport {
	return c.transports[maphash.String(c.seed, host)%numTransports]
}

// fetch asks the target once, following redirects. A token that the target does not accept any more is replaced once.
func (c *client) fetch(ctx context.Context, q *request) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if q.endpoint.credentials.OAuth2 == nil {
		return c.follow(ctx, q, "")
	}
	token, fresh, err := c.tokens.get(ctx, c, q.endpoint)
	if err != nil {
		return nil, err
	}
	a, err := c.follow(ctx, q, token)
	if kind := freshet.KindOf(err); err == nil || kind != freshet.SourceUnauthorized && kind != freshet.SourceExpired {
		return a, err
	}
	c.tokens.drop(q.endpoint, token)
	if fresh {
		return nil, err
	}
	if token, _, err = c.tokens.get(ctx, c, q.endpoint); err != nil {
		return nil, err
	}
	return c.follow(ctx, q, token)
}

// follow goes from one redirect to the next. Whoever gets the request after it left its first origin gets it without
// credentials, also if that is the first origin again: only we send them there, not somebody else's redirect.
func (c *client) follow(ctx context.Context, q *request, token string) (*response, error) {
	at, trusted := q.endpoint.url, true
	for hop := 0; ; hop++ {
		if !freshet.AllowsHost(q.endpoint.allowedHosts, at.Hostname()) {
			return nil, freshet.Errorf(freshet.SourceUnreachable, "The app does not allow its topics to reach this host")
		}
		resp, err := c.transport(authority(at)).RoundTrip(c.newRequest(ctx, q, at, token, trusted))
		if err != nil {
			return nil, c.unreached(ctx, err)
		}
		if q.responded != nil {
			q.responded(resp.StatusCode)
		}
		location := resp.Header.Get("Location")
		if !isRedirect(resp.StatusCode) || location == "" {
			a, err := c.read(ctx, q, resp)
			discard(resp.Body)
			return a, err
		}
		discard(resp.Body)
		if hop == maxRedirects {
			return nil, freshet.Errorf(freshet.SourceFailed, "The data source redirected more than %d times", maxRedirects)
		}
		next, err := redirected(at, location)
		if err != nil {
			return nil, err
		}
		trusted = trusted && next.Scheme == at.Scheme && authority(next) == authority(at)
		at = next
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirected resolves a redirect, and refuses to go where no target may be.
func redirected(from *url.URL, location string) (*url.URL, error) {
	base := *from
	if base.Opaque != "" {
		base.Path, _ = url.PathUnescape(base.Opaque)
		base.RawPath, base.Opaque = from.Opaque, ""
	}
	next, err := base.Parse(location)
	if err != nil || next.Scheme != "http" && next.Scheme != "https" || next.Hostname() == "" || next.User != nil || next.Opaque != "" {
		return nil, freshet.Errorf(freshet.SourceUnreachable, "The data source redirected to an address that is not allowed")
	}
	next.Fragment = ""
	return next, nil
}

// newRequest writes the request. Credentials go along only while trusted.
func (c *client) newRequest(ctx context.Context, q *request, at *url.URL, token string, trusted bool) *http.Request {
	h := make(http.Header, 8)
	h["Accept"] = acceptJSON
	h["Accept-Encoding"] = acceptGzip
	h["User-Agent"] = []string{c.agent()}
	h["Via"] = via
	if trusted {
		own := map[string]bool{}
		for _, f := range q.endpoint.credentials.Headers {
			if !own[f.Name] {
				own[f.Name] = true
				delete(h, f.Name)
			}
			h[f.Name] = append(h[f.Name], f.Value.Reveal())
		}
		if token != "" {
			h["Authorization"] = []string{"Bearer " + token}
		}
	}
	if q.etag != "" {
		h["If-None-Match"] = []string{q.etag}
	}
	if q.lastModified != "" {
		h["If-Modified-Since"] = []string{q.lastModified}
	}
	req := &http.Request{Method: http.MethodGet, URL: at, Host: at.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	return req.WithContext(ctx)
}

// agent is how we name ourselves.
func (c *client) agent() string { return "freshet/" + c.version }

// Shared by all requests; nobody changes them.
var (
	acceptJSON = []string{"application/json"}
	acceptGzip = []string{"gzip"}
	via        = []string{"1.1 " + ViaName}
)

// ViaName is how requests of pollers name us on their way.
const ViaName = "freshet"
