package gateway

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/wire"
)

// Timeouts say how patient the gateway is with upstreams. A response under way may take as long as it likes: it may be
// a stream.
type Timeouts struct {
	Connect  time.Duration // to connect, TLS included; 0 = 5 s
	Response time.Duration // until the header of the response; 0 = 60 s
	Body     time.Duration // between two pieces of a client's body; 0 = 60 s
}

const usualBodyTimeout = time.Minute

const (
	maxIdlePerUpstream = 512 // connections; as many as requests may be under way without connecting anew
	idleTimeout        = 60 * time.Second
	maxResponseHeader  = 256 << 10
)

// newTransport speaks HTTP to upstreams. It does not touch bodies: what is compressed stays compressed.
func newTransport(t Timeouts, barred registry.Barred) *http.Transport {
	if t.Connect <= 0 {
		t.Connect = 5 * time.Second
	}
	if t.Response <= 0 {
		t.Response = time.Minute
	}
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: t.Connect, KeepAlive: 30 * time.Second, Control: barred.Control}).DialContext,
		TLSHandshakeTimeout:    t.Connect,
		ResponseHeaderTimeout:  t.Response,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConnsPerHost:    maxIdlePerUpstream,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// newClient connects, and waits, as the transport does.
func newClient(like *http.Transport) *wire.Client {
	return &wire.Client{Dial: like.DialContext, Timeout: like.ResponseHeaderTimeout, IdleTimeout: idleTimeout, MaxIdle: maxIdlePerUpstream,
		MaxHead: maxResponseHeader}
}

// upstream is where a route leads outside this process. Static once its proxy is made.
type upstream struct {
	gateway      *Gateway
	scheme, host string
	address      string // to connect to
	path         string // escaped, without the trailing slash; put before the path of each request
	strip        string // taken off the path of each request
	preserveHost bool
	standard     *httputil.ReverseProxy
}

// newUpstream reads a URL that was checked before it was stored.
func newUpstream(g *Gateway, raw string) (*upstream, error) {
	to, err := url.Parse(raw)
	if err != nil {
		return nil, freshet.Wrap(freshet.Invalid, err, "The upstream is not a URL")
	}
	u := &upstream{gateway: g, scheme: strings.ToLower(to.Scheme), host: to.Host, address: to.Host, path: strings.TrimSuffix(sentPath(to), "/")}
	if to.Port() == "" {
		u.address = net.JoinHostPort(to.Hostname(), "80")
	}
	return u, nil
}

// proxy forwards requests to the upstream as it is described now.
func (u upstream) proxy() http.Handler {
	// Streams and answers of unknown length are flushed as they come.
	u.standard = &httputil.ReverseProxy{
		Rewrite:   u.rewrite,
		Transport: u.gateway.standard,
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode < http.StatusContinue {
				return wire.ErrBadStatus
			}
			return nil
		},
		BufferPool:   buffers,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { u.gateway.upstreamFailed(w, r, u.host, err) },
		ErrorLog:     quiet,
	}
	return &u
}

// ServeHTTP forwards a request.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if u.scheme == "http" && canSend(r) {
		c, err := u.send(r, nil)
		u.pass(w, r, c, err)
		return
	}
	u.standard.ServeHTTP(w, r)
}

// quiet drops what the proxy says about bodies that break off: the client sees it, and upstreamFailed tells the rest.
var quiet = log.New(io.Discard, "", 0)

// maxHops is how often a request may pass a gateway of ours before it is taken for a loop.
const (
	maxHops   = 8
	hopHeader = "X-Freshet-Hops"
)

// hopTexts are what the header says behind the first hop, the second, …
var hopTexts = [maxHops][]string{{"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"6"}, {"7"}, {"8"}}

func nextHop(r *http.Request) []string { return hopTexts[min(hops(r), maxHops-1)] }

// target is the path to ask for behind the upstream's own, and what was taken off it.
func (u *upstream) target(sent *url.URL) (path, prefix string) {
	path = sentPath(sent)
	if u.strip != "" {
		prefix, path = u.strip, path[len(u.strip):]
	}
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	return path, prefix
}

// rewrite makes the request that the upstream gets the standard way. Hop-by-hop and client-made forwarding headers are gone
// already.
func (u *upstream) rewrite(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	path, prefix := u.target(in.URL)
	out.URL.Scheme, out.URL.Host = u.scheme, u.host
	setTarget(out.URL, u.path+path)
	out.URL.RawQuery = in.URL.RawQuery // as it was sent, whatever the library thinks of it
	out.Trailer = nil                  // announced, but the proxy does not pass them on
	out.Host = ""
	if u.preserveHost {
		out.Host = in.Host
	}
	told := forwarding(in, prefix)
	for i, name := range forwardingNames {
		delete(out.Header, name)
		if told[i] != "" {
			out.Header[name] = told[i : i+1 : i+1]
		}
	}
	if f := forwarded(in); f != nil {
		out.Header["Forwarded"] = f
	}
	out.Header[hopHeader] = nextHop(in)
	markRepeatable(out)
}

// setTarget makes the URL ask for exactly this path. Opaque keeps every byte, but cannot begin with two slashes.
func setTarget(to *url.URL, path string) {
	if !strings.HasPrefix(path, "//") {
		to.Opaque = path
		return
	}
	to.Opaque, to.RawPath = "", path
	if decoded, err := url.PathUnescape(path); err == nil {
		to.Path = decoded
	}
}

func hops(r *http.Request) int {
	told, ok := r.Header[hopHeader]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(told[0])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// forwardingNames are the headers that tell an upstream who asked, and for what.
var forwardingNames = [...]string{"X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix"}

// isForwarding reports whether a header is for us alone to say.
func isForwarding(name string) bool {
	switch name {
	case "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix",
		"Forwarded", hopHeader:
		return true
	}
	return false
}

// forwarding returns their values; what is empty is not sent. What a client says about itself counts only when a trusted
// proxy passed it on.
func forwarding(in *http.Request, prefix string) [len(forwardingNames)]string {
	client := bareAddress(in.RemoteAddr)
	proto := "http"
	if in.TLS != nil {
		proto = "https"
	}
	told := [...]string{client, client, proto, in.Host, localPort(in), prefix}
	if peer, ok := in.Context().Value(trustedPeer{}).(string); ok {
		told[1] = strings.Join(append(in.Header["X-Forwarded-For"], bareAddress(peer)), ", ")
		for i, name := range forwardingNames[2:5] {
			if said := in.Header.Get(name); said != "" {
				told[2+i] = said
			}
		}
		told[5] = strings.TrimSuffix(in.Header.Get("X-Forwarded-Prefix"), "/") + prefix
	}
	return told
}

// forwarded is what a trusted proxy says in the standard's own header.
func forwarded(in *http.Request) []string {
	if f, ok := in.Header["Forwarded"]; ok && in.Context().Value(trustedPeer{}) != nil {
		return f
	}
	return nil
}

// bareAddress takes off the port, and the brackets around IPv6.
func bareAddress(address string) string {
	end := strings.LastIndexByte(address, ':')
	if end < 0 {
		return address
	}
	host := address[:end]
	if len(host) > 2 && host[0] == '[' {
		return host[1 : len(host)-1]
	}
	return host
}

// localPort is the port that the request came in at.
func localPort(r *http.Request) string {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return ""
	}
	if last := lastPort.Load(); last != nil && last.number == a.Port {
		return last.text
	}
	p := &port{a.Port, strconv.Itoa(a.Port)}
	lastPort.Store(p)
	return p.text
}

// port is a number and its text.
type port struct {
	number int
	text   string
}

// lastPort saves writing the same number for every request: a process has one gateway listener.
var lastPort atomic.Pointer[port]

// upstreamFailed answers for an upstream that did not.
func (g *Gateway) upstreamFailed(w http.ResponseWriter, r *http.Request, host string, err error) {
	if r.Context().Err() != nil || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client has gone; there is nobody to answer
	}
	a := classify(err)
	if a.status >= http.StatusInternalServerError {
		// Not the URL: the query may carry keys.
		g.log.Warn("upstream failed", "host", host, "status", a.status, "err", withoutURL(err))
	}
	a.write(w)
}

// withoutURL takes off what net/http puts before the cause.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// classify turns the failure of an upstream, or of the request's own body, into an answer.
func classify(err error) *answer {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return tooLargeAnswer
	}
	if _, broken := errors.AsType[*bodyError](err); broken {
		return &answer{status: http.StatusBadRequest, message: "The body could not be read to its end"}
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return &answer{status: http.StatusServiceUnavailable, message: "The upstream server is currently unavailable"}
	}
	timeout, ok := errors.AsType[net.Error](err)
	if ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return &answer{status: http.StatusGatewayTimeout, message: "The upstream server is timing out"}
	}
	return &answer{status: http.StatusBadGateway, message: "An invalid response was received from the upstream server"}
}

// buffers are what bodies are copied through.
var buffers = &bufferPool{}

type bufferPool struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get implements httputil.BufferPool.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return b[:]
	}
	return make([]byte, bufferSize)
}

// Put implements httputil.BufferPool.
func (p *bufferPool) Put(b []byte) {
	if len(b) == bufferSize {
		p.pool.Put((*[bufferSize]byte)(b))
	}
}
