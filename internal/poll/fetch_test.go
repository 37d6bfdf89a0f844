package poll

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

// origin is a target that does as it is told and remembers what it was asked.
type origin struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func newOrigin(t *testing.T, h http.HandlerFunc) *origin {
	t.Helper()
	o := &origin{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.requests = append(o.requests, r)
		o.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *origin) last() *http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.requests) == 0 {
		return nil
	}
	return o.requests[len(o.requests)-1]
}

func (o *origin) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.requests)
}

func testClient(t *testing.T, change ...func(*clientOptions)) *client {
	t.Helper()
	o := clientOptions{version: "test", timeout: time.Minute, maxBody: 1 << 20}
	for _, c := range change {
		c(&o)
	}
	c := newClient(o)
	t.Cleanup(c.close)
	return c
}

func targetOf(t *testing.T, url string, headers ...freshet.HeaderField) *endpoint {
	t.Helper()
	topic := freshet.Topic{AppID: "app", Publisher: freshet.Publisher{URL: url, Credentials: freshet.Credentials{Headers: headers}}}
	tg, err := newEndpoint(&topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func header(name, value string) freshet.HeaderField {
	return freshet.HeaderField{Name: name, Value: freshet.Secret(value)}
}

func get(t *testing.T, c *client, url string, headers ...freshet.HeaderField) (*response, error) {
	t.Helper()
	return c.fetch(t.Context(), &request{endpoint: targetOf(t, url, headers...)})
}

func wantFailure(t *testing.T, err error, kind freshet.Kind) *freshet.Error {
	t.Helper()
	e, ok := errors.AsType[*freshet.Error](err)
	if !ok || e.Kind != kind {
		t.Fatalf("got %v (kind %d), want kind %d", err, freshet.KindOf(err), kind)
	}
	return e
}

func TestTheTargetGetsPathAndQueryAsTheyWereWritten(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	c := testClient(t)
	for given, want := range map[string]string{
		"/a%2Fb|c?x=1&b=%20":       "",
		"//double//slash/?q=a+b":   "",
		"/%7Euser/./../x?a=1&&b=2": "",
		"/caf%C3%A9?q=%c3%a9":      "",
		"/caf\u00e9?q=\u00e9 x":    "/caf%C3%A9?q=%C3%A9%20x",
		"?only=query":              "/?only=query",
		"":                         "/",
		"/a;b=c,d@e:f?[x]={y}":     "",
	} {
		if want == "" {
			want = given
		}
		if _, err := get(t, c, o.URL+given); err != nil {
			t.Errorf("%q: %v", given, err)
			continue
		}
		if got := o.last().RequestURI; got != want {
			t.Errorf("%q reached the target as %q, want %q", given, got, want)
		}
	}
}

func TestARequestSaysWhoItIsFromAndWhatItWants(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	q := &request{endpoint: targetOf(t, o.URL, header("Authorization", "Basic x"), header("X-Twice", "1"), header("X-Twice", "2")),
		etag: `"e"`, lastModified: "Sun, 15 Nov 2026 00:00:00 GMT"}
	if _, err := testClient(t).fetch(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	_ = o.last().Header.Write(&got)
	want := "Accept: application/json\r\nAccept-Encoding: gzip\r\nAuthorization: Basic x\r\n" +
		"If-Modified-Since: Sun, 15 Nov 2026 00:00:00 GMT\r\nIf-None-Match: \"e\"\r\n" +
		"User-Agent: freshet/test\r\nVia: 1.1 freshet\r\nX-Twice: 1\r\nX-Twice: 2\r\n"
	if got.String() != want {
		t.Errorf("the target got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestAnswersAreClassified(t *testing.T) {
	zipped := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(s))
		_ = z.Close()
		return b.String()
	}
	status := func(code int, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
		}
	}
	send := func(encoding, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			_, _ = io.WriteString(w, body)
		}
	}
	big := strings.Repeat(" ", 1<<20) + "{}"
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		kind   freshet.Kind
		body   string // of a success
	}{
		{"plain", send("", `{"a":1}`), 0, `{"a":1}`},
		{"gzip", send("gzip", zipped(`{"a":2}`)), 0, `{"a":2}`},
		{"identity", send("identity", `3`), 0, `3`},
		{"too large", send("", big), freshet.SourceUnreadable, ""},
		{"a bomb", send("gzip", zipped(strings.Repeat("0", 100<<20))), freshet.SourceUnreadable, ""},
		{"gzip that is none", send("gzip", `{"a":1}`), freshet.SourceUnreadable, ""},
		{"gzip cut off", send("gzip", zipped(big[:1<<19])[:100]), freshet.SourceFailed, ""},
		{"another encoding", send("br", "x"), freshet.SourceUnreadable, ""},
		{"twice encoded", send("gzip, gzip", zipped(zipped("1"))), freshet.SourceUnreadable, ""},
		{"nothing", status(204), freshet.SourceUnreadable, ""},
		{"401", status(401), freshet.SourceUnauthorized, ""},
		{"401 expired", status(401, "WWW-Authenticate", `Bearer error="invalid_token", error_description="The access token Expired"`), freshet.SourceExpired, ""},
		{"403", status(403), freshet.SourceForbidden, ""},
		{"404", status(404), freshet.SourceFailed, ""},
		{"429", status(429), freshet.SourceFailed, ""},
		{"500", status(500), freshet.SourceFailed, ""},
		{"304 to nothing", status(304), freshet.SourceFailed, ""},
		{"redirect to nowhere", status(302), freshet.SourceFailed, ""},
		{"206", status(206), freshet.SourceFailed, ""},
		{"header beyond all bounds", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		}, freshet.SourceFailed, ""},
		{"broken off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, freshet.SourceFailed, ""},
		{"hung up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, freshet.SourceFailed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrigin(t, test.answer)
			got, err := get(t, testClient(t), o.URL)
			if test.kind != 0 {
				e := wantFailure(t, err, test.kind)
				if e.Msg == "" || strings.Contains(e.Msg, "127.0.0.1") {
					t.Errorf("the message is %q", e.Msg)
				}
				return
			}
			if err != nil || string(got.body) != test.body {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "99999999999999999999": 0, "9999999999": maxRetryAfter,
		"-5": 0, "soon": 0, "Sun, 15 Nov 2026 00:01:00 GMT": time.Minute, "Sat, 14 Nov 2026 00:01:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q is %v, want %v", value, got, want)
		}
	}
}

func TestAnAnswerThatNeverEndsIsCutOff(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	})
	_, err := get(t, testClient(t, func(o *clientOptions) { o.timeout = 50 * time.Millisecond }), o.URL)
	wantFailure(t, err, freshet.SourceUnreachable)
}

func TestWhatCannotBeReachedIsTold(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	plain := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	secure := httptest.NewTLSServer(plain.Config.Handler)
	defer secure.Close()
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name servers here")
	}}
	c := testClient(t, func(o *clientOptions) { o.resolver = resolver })
	for url, kind := range map[string]freshet.Kind{
		"http://" + closed.Addr().String():                    freshet.SourceUnreachable,
		"http://no.such.host.invalid/":                        freshet.SourceUnknownHost,
		secure.URL:                                            freshet.SourceUnreachable, // an unknown authority
		strings.Replace(plain.URL, "http://", "https://", 1):  freshet.SourceUnreachable,
		strings.Replace(secure.URL, "https://", "http://", 1): freshet.SourceFailed, // 400: it says so in HTTP
	} {
		_, err := get(t, c, url)
		if e := wantFailure(t, err, kind); strings.Contains(e.Msg, "127.0.0.1") {
			t.Errorf("%s: %q names the address", url, e.Msg)
		}
	}
}

// TestNamesInsideCannotBeProbed: whether an internal name exists is nobody's business outside. localhost stands for a name that
// resolves to an internal address.
func TestNamesInsideCannotBeProbed(t *testing.T) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name servers here")
	}}
	c := testClient(t, func(o *clientOptions) { o.guarded, o.resolver = true, resolver })
	ask := map[string]func(host string) error{
		"a target": func(host string) error {
			_, err := get(t, c, "http://"+host+"/")
			return err
		},
		"a token endpoint": func(host string) error {
			_, err := c.fetch(t.Context(), &request{endpoint: withOAuth2(targetOf(t, "http://192.0.2.1/"), "http://"+host+"/token")})
			return err
		},
		"a trial": func(host string) error {
			tester := &Tester{client: c, trials: map[string]int{}}
			return try(t, tester, sourceAt("http://"+host+"/")).Failure
		},
	}
	for what, ask := range ask {
		for _, host := range []string{"localhost:1", "no.such.host.invalid", "10.0.0.1", "[::1]:80"} {
			if e := wantFailure(t, ask(host), freshet.SourceUnreachable); e.Msg != unreachable {
				t.Errorf("%s at %s: %q", what, host, e.Msg)
			}
		}
	}
}

func TestHTTP2IsUsedWhereTheTargetSpeaksIt(t *testing.T) {
	var protocol string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol = r.Proto + " " + r.RequestURI
		fmt.Fprint(w, "{}")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := testClient(t, func(o *clientOptions) { o.tls = &tls.Config{RootCAs: roots} })
	if _, err := get(t, c, s.URL+"/a%2Fb|?x"); err != nil || protocol != "HTTP/2.0 /a%2Fb|?x" {
		t.Errorf("%q, %v", protocol, err)
	}
}

func TestRedirectsLeaveCredentialsBehind(t *testing.T) {
	there := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `"there"`) })
	var back string
	elsewhere := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, back+"/end", http.StatusFound) })
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, there.URL, http.StatusMovedPermanently)
		case "/round":
			http.Redirect(w, r, elsewhere.URL, http.StatusPermanentRedirect)
		default:
			fmt.Fprint(w, `"end"`)
		}
	})
	back = o.URL
	c := testClient(t)
	secrets := []freshet.HeaderField{header("Authorization", "Bearer secret"), header("X-Api-Key", "secret")}
	for path, want := range map[string]struct {
		at    *origin
		shown bool
	}{"/same": {o, true}, "/away": {there, false}, "/round": {o, false}} {
		if _, err := get(t, c, o.URL+path, secrets...); err != nil {
			t.Fatal(path, err)
		}
		h := want.at.last().Header
		if shown := h.Get("Authorization") != "" || h.Get("X-Api-Key") != ""; shown != want.shown || h.Get("Accept") == "" {
			t.Errorf("%s: credentials shown is %t, header %v", path, shown, h)
		}
	}
}

func TestRedirectsEnd(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		n := len(r.URL.Path)
		if n <= 6 && strings.HasPrefix(r.URL.Path, "/5") || strings.HasPrefix(r.URL.Path, "/9") {
			if n > 6 && r.URL.Path[1] == '5' {
				return
			}
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
			return
		}
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, "{}")
	})
	c := testClient(t)
	if _, err := get(t, c, o.URL+"/5"); err != nil {
		t.Errorf("five redirects: %v", err)
	}
	_, err := get(t, c, o.URL+"/9")
	wantFailure(t, err, freshet.SourceFailed)
	for _, to := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "ftp://x/", "http://u:p@127.0.0.1/", "http:///x", "http://[::1", "javascript:x"} {
		_, err := get(t, c, o.URL+"/?to="+to)
		wantFailure(t, err, freshet.SourceUnreachable)
	}
}

func TestAllowListsHoldForRedirectsToo(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
	})
	tg := targetOf(t, o.URL)
	tg.allowedHosts = []string{"127.0.0.1"}
	_, err := testClient(t).fetch(t.Context(), &request{endpoint: tg})
	if e := wantFailure(t, err, freshet.SourceUnreachable); !strings.Contains(e.Msg, "app") {
		t.Errorf("it says %q", e.Msg)
	}
	before := o.count()
	tg.allowedHosts = []string{"*.example.com"}
	_, err = testClient(t).fetch(t.Context(), &request{endpoint: tg})
	wantFailure(t, err, freshet.SourceUnreachable)
	if o.count() != before {
		t.Error("a host that is not allowed was asked")
	}
}
