package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRoutingAndStripping(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/mock", up.URL)
	w.register("/strip", up.URL, "strip_request_path", "true")
	w.register("/strip/deeper", up.URL+"/deep/", "strip_request_path", "true")
	w.register("/based", up.URL+"/base", "strip_request_path", "true")
	w.register("/mock-with.dots~", up.URL, "strip_request_path", "true")
	w.register("/api/quote", up.URL, "strip_request_path", "true")
	for _, c := range []struct{ target, want string }{
		{"/mock", "/mock"},
		{"/mock/", "/mock/"},
		{"/mock/some_path?x=1&y=%20;z", "/mock/some_path?x=1&y=%20;z"},
		{"/strip", "/"},
		{"/strip/", "/"},
		{"/strip?a", "/?a"},
		{"/strip/strip/of", "/strip/of"},
		{"/strip/deeper/x", "/deep/x"},
		{"/strip/deeper", "/deep/"},
		{"/strip/deeperx", "/deeperx"},
		{"/based", "/base/"},
		{"/based/x", "/base/x"},
		{"/mock-with.dots~/x", "/x"},
		{"/api/quote/x", "/x"},
		{"/strip/a%2Fb/%2E/c%20d/%7Bx%7D", "/a%2Fb/%2E/c%20d/%7Bx%7D"},
		{"/strip/a|b%2Fc", "/a%7Cb%2Fc"},
		{"/strip//double//slash/", "//double//slash/"},
		{"/strip/./dot", "/./dot"},
		{"/mock/é", "/mock/%C3%A9"},
		{"/mock?", "/mock?"},
		{"/strip?", "/?"},
		{"http://any.example/strip/x?y", "/x?y"},
	} {
		if got := w.rawTarget(c.target); got != c.want {
			t.Errorf("%s reaches the upstream as %s, want %s", c.target, got, c.want)
		}
	}
	for _, nowhere := range []string{"/mockx", "/some_path", "/", "/MOCK", "/%6Dock", "//mock", "/api/quotes", "/api"} {
		if a := w.call("GET", nowhere); a.status != http.StatusNotFound || !strings.Contains(a.body, "API not found with these values") {
			t.Errorf("%s answers %d %s", nowhere, a.status, a.body)
		}
	}
	if a := w.call("GET", "/api/v1/quote"); a.body != "manage /quote" {
		t.Errorf("the platform's own API answers %s", a.body)
	}
	// What the answer names is what was sent, not what it may mean.
	if a := w.call("GET", "/mock%2Fx%20y?z"); !strings.Contains(a.body, `"request_path":"/mock%2Fx%20y"`) {
		t.Errorf("an escaped path answers %s", a.body)
	}
}

// rawTarget sends a request line as it is and returns the one that the upstream got.
func (w *world) rawTarget(target string) string {
	w.t.Helper()
	_, body := w.raw("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	_, rest, _ := strings.Cut(body, `"Target":"`)
	got, _, _ := strings.Cut(rest, `"`)
	return strings.ReplaceAll(got, `\u0026`, "&")
}

// raw sends bytes and returns the status and the rest of what comes back.
func (w *world) raw(request string) (status int, rest string) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.front.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, request); err != nil {
		w.t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil && len(all) == 0 {
		w.t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(all), "HTTP/1.%d %d", new(int), &status); err != nil {
		w.t.Fatalf("no status in %q", all)
	}
	return status, string(all)
}

func TestNoPathLeadsOutOfItsAPI(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL+"/public", "strip_request_path", "true")
	for _, path := range []string{
		"/quote/..", "/quote/../admin", "/quote/a/../../admin", "/quote/%2e%2e/admin", "/quote/.%2E/admin", "/quote/..%2fadmin",
		"/quote/..%5cadmin", `/quote/..\admin`, "/quote/%252e%252e/admin", "/quote/..;/admin", "/quote/..;x=1/admin", "/quote/a%2f..%2f..%2fadmin",
	} {
		status, body := w.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if status != http.StatusBadRequest || strings.Contains(body, "Target") {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/quote/...", "/quote/a..b", "/quote/..a", "/quote/a%20b", "/quote/%25"} {
		if a := w.call("GET", path); a.status != http.StatusOK {
			t.Errorf("%s answers %d %s", path, a.status, a.body)
		}
	}
}

func TestAnAPIAtTheRootGetsWhatNobodyElseDoes(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/", up.URL+"/rest")
	w.register("/quote", up.URL)
	for target, want := range map[string]string{
		"/": "/rest/", "/x/y": "/rest/x/y", "/quote/x": "/quote/x", "/quotes": "/rest/quotes",
		"http://any.example": "/rest/", "http://any.example?x": "/rest/?x",
	} {
		if got := w.rawTarget(target); got != want {
			t.Errorf("%s reaches %s, want %s", target, got, want)
		}
	}
	if a := w.call("GET", "/api/v1/x"); a.body != "manage /x" {
		t.Errorf("the platform's API answers %s", a.body)
	}
}

func TestABodyThatStallsIsGivenUp(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Timeouts.Body = 50 * time.Millisecond })
	canceled := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(canceled)
	}))
	t.Cleanup(up.Close)
	w.register("/quote", up.URL)
	conn, err := net.Dial("tcp", w.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /quote HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	if answer, _ := io.ReadAll(conn); strings.Contains(string(answer), "200 OK") {
		t.Errorf("half a request was answered: %s", answer)
	}
	<-canceled
}

func TestRoutingByHost(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.must("POST", "/apis/", "request_host", "mock.example", "upstream_url", up.URL+"/exact", "request_path", "/mock", "strip_request_path", "true")
	w.must("POST", "/apis/", "request_host", "*.wild.example", "upstream_url", up.URL+"/suffix")
	w.must("POST", "/apis/", "request_host", "wild.*", "upstream_url", up.URL+"/prefix")
	w.must("POST", "/apis/", "request_host", "keep.example", "upstream_url", up.URL, "preserve_host", "true")
	for _, c := range []struct{ host, path, want string }{
		{"mock.example", "/x", "/exact/x"},
		{"MOCK.example:8000", "/mock/x", "/exact/mock/x"}, // routed by host, so nothing is stripped
		{"other.example", "/mock/x", "/exact/x"},
		{"a.wild.example", "/x", "/suffix/x"},
		{"a.b.wild.example", "/x", "/suffix/x"},
		{"wild.org", "/x", "/prefix/x"},
		{"keep.example", "/x", "/x"},
	} {
		if got := w.upstreamSaw("GET", c.path, "Host", c.host); got.Target != c.want {
			t.Errorf("%s%s reaches %s, want %s", c.host, c.path, got.Target, c.want)
		}
	}
	for _, override := range [][]string{
		{"X-Host-Override", "mock.example"}, {"X-Host-Override", "nowhere.example", "X-Host-Override", "mock.example"},
	} {
		if got := w.upstreamSaw("GET", "/x", override...); got.Target != "/exact/x" {
			t.Errorf("%s reaches %s", override, got.Target)
		}
	}
	if got := w.upstreamSaw("GET", "/x", "Host", "keep.example"); got.Host != "keep.example" {
		t.Errorf("a preserved host is %s", got.Host)
	}
	if got := w.upstreamSaw("GET", "/x", "Host", "mock.example"); "http://"+got.Host != up.URL {
		t.Errorf("the upstream's host is %s", got.Host)
	}
	for _, host := range []string{"wild.example", "example", "xmock.example"} {
		want := http.StatusNotFound
		if host == "wild.example" {
			want = http.StatusOK // wild.*
		}
		if a := w.call("GET", "/x", "Host", host); a.status != want {
			t.Errorf("%s answers %d", host, a.status)
		}
	}
	// No host can take the platform's paths away.
	if a := w.call("GET", "/api/v1/x", "Host", "mock.example"); a.body != "manage /x" {
		t.Errorf("the platform's API answers %s", a.body)
	}
}

func TestUpstreamsLearnWhoAskedAndNothingThatClientsInvent(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL, "strip_request_path", "true")
	spoofed := []string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil", "X-Forwarded-Port", "1",
		"X-Forwarded-Prefix", "/evil", "X-Real-IP", "1.2.3.4", "Forwarded", "for=1.2.3.4", "X-Consumer-ID", "evil", "X-Consumer-Username", "evil",
		"X-Consumer-Custom-ID", "evil", "X_Consumer_ID", "evil", "X_Forwarded_For", "evil", "X-Consumer-Groups", "evil",
		"X-Forwarded-Ssl", "evil", "X-Forwarded-Scheme", "evil", "X-Forwarded", "evil", "X_Real-IP", "evil", "X-Credential-Username", "evil",
		"X-Anonymous-Consumer", "evil", "X-Authenticated-Userid", "evil", "Transfer_Encoding", "evil", "Content_Length", "evil",
		"Connection", "X-Secret", "X-Secret", "hop", "Keep-Alive", "x", "Proxy-Authorization", "x", "Te", "gzip", "User-Agent", "me", "X-Kept", "yes"}
	h := w.upstreamSaw("GET", "/quote/x", spoofed...).Header
	front := strings.TrimPrefix(w.front.URL, "http://")
	_, port, _ := net.SplitHostPort(front)
	for name, want := range map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": front,
		"X-Forwarded-Port": port, "X-Forwarded-Prefix": "/quote", "User-Agent": "me", "X-Kept": "yes", "X-Freshet-Hops": "1",
	} {
		if got := strings.Join(h[name], "|"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, values := range h {
		if strings.Contains(strings.Join(values, " "), "evil") {
			t.Errorf("%s: %v came through", name, values)
		}
	}
	for _, name := range []string{"Forwarded", "X-Secret", "Keep-Alive", "Proxy-Authorization", "Connection", "Te"} {
		if values, ok := h[name]; ok {
			t.Errorf("%s: %v came through", name, values)
		}
	}
}

func TestATrustedProxyIsBelieved(t *testing.T) {
	w := newWorld(t, trust("127.0.0.0/8", "10.0.0.0/8"))
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	h := w.upstreamSaw("GET", "/quote", "X-Forwarded-For", "6.6.6.6, 1.2.3.4", "X-Forwarded-For", "10.1.1.1", "X-Forwarded-Proto", "https",
		"X-Forwarded-Host", "public.example", "X-Forwarded-Port", "443", "X-Forwarded-Prefix", "/front", "X-Forwarded-Ssl", "on").Header
	for name, want := range map[string]string{
		"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 10.1.1.1, 127.0.0.1", "X-Real-Ip": "1.2.3.4", "X-Forwarded-Proto": "https",
		"X-Forwarded-Host": "public.example", "X-Forwarded-Port": "443", "X-Forwarded-Prefix": "/front", "X-Forwarded-Ssl": "on",
	} {
		if got := strings.Join(h[name], "|"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAmbiguousRequestsAreRefused(t *testing.T) {
	w := newWorld(t)
	reached := make(chan string, 100)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.RequestURI }))
	t.Cleanup(up.Close)
	w.register("/quote", up.URL)
	const smuggled = "GET /quote/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, request := range map[string]string{
		"two lengths":             "POST /quote HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n" + smuggled,
		"space before the colon":  "POST /quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"unknown coding":          "POST /quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunked twice":           "POST /quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"line break in a value":   "GET /quote HTTP/1.1\r\nHost: x\r\nX-A: b\rX-B: c\r\n\r\n",
		"nul in a value":          "GET /quote HTTP/1.1\r\nHost: x\r\nX-A: b\x00c\r\n\r\n",
		"a length and chunks":     "POST /quote/both HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunks and a length":     "POST /quote/both HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled,
		"chunks in HTTP/1.0":      "POST /quote/both HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled,
		"both, for the platform":  "POST /api/v1/apps HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled,
		"lines without CR":        "POST /quote HTTP/1.1\nHost: x\nContent-Length: 2\n\nok",
		"a line without CR":       "GET /quote HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n",
		"two hosts":               "GET /quote HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"no host":                 "GET /quote HTTP/1.1\r\n\r\n",
		"negative length":         "POST /quote HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"length with a plus":      "POST /quote HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd",
		"broken escape in a path": "GET /quote/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if status, _ := w.raw(request); status != http.StatusBadRequest && status != http.StatusNotImplemented {
			t.Errorf("%s: answered with %d", name, status)
		}
	}
	// A folded header becomes one line, as the standard allows.
	if status, _ := w.raw("GET /quote HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-A: b\r\n Content-Length: 44\r\n\r\n" + smuggled); status != http.StatusOK {
		t.Errorf("a folded header: answered with %d", status)
	}
	// The first of these is answered, and nothing of the others reaches the upstream.
	w.raw("POST /quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
		"POST /quote/both HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled)
	close(reached)
	for target := range reached {
		if strings.Contains(target, "smuggled") || strings.Contains(target, "both") {
			t.Errorf("%s reached the upstream", target)
		}
	}
}

func TestBrokenUpstreamsAreAnsweredFor(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	w := newWorld(t, func(o *Options) { o.Timeouts = Timeouts{Connect: time.Minute, Response: time.Minute} })
	w.register("/refused", "http://"+closed.Addr().String())
	w.register("/unknown", "http://no-such-host.invalid")
	w.register("/garbage", rawServer(t, "this is not HTTP\r\n\r\n"))
	w.register("/silent", rawServer(t, ""))
	w.register("/status", rawServer(t, "HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nok"))
	w.register("/headers", rawServer(t, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-A: "+strings.Repeat("x", 1000)+"\r\n", 400)+"\r\n"))
	w.answerFor(map[string]int{"/refused": 502, "/unknown": 503, "/garbage": 502, "/silent": 502, "/status": 502, "/headers": 502})
}

// TestAnUpstreamThatNeverAnswersIsTimedOut has a world of its own: the short limit it needs would, on a busy machine, also
// time out an upstream that is only broken.
func TestAnUpstreamThatNeverAnswersIsTimedOut(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); slow.Close() })
	w := newWorld(t, func(o *Options) { o.Timeouts = Timeouts{Connect: time.Minute, Response: 50 * time.Millisecond} })
	w.register("/slow", slow.URL)
	w.register("/begun", stuckServer(t, "HTTP/1.1 200 O"))
	w.register("/headed", stuckServer(t, "HTTP/1.1 200 OK\r\nContent-Le"))
	w.answerFor(map[string]int{"/slow": 504, "/begun": 504, "/headed": 504})
}

// answerFor wants each path, whose upstream is broken, answered with the status and a message, whichever way leads to the
// upstream, and no key in the log.
func (w *world) answerFor(statuses map[string]int) {
	w.t.Helper()
	for path, want := range statuses {
		for _, method := range []string{"GET", "DELETE"} { // each way to the upstream
			a := w.call(method, path+"?apikey=secret")
			if a.status != want || !strings.HasPrefix(a.body, `{"message":"`) {
				w.t.Errorf("%s %s answers %d %s, want %d", method, path, a.status, a.body, want)
			}
		}
	}
	if strings.Contains(w.logs.String(), "secret") {
		w.t.Errorf("a key is in the log:\n%s", w.logs)
	}
}

// rawServer answers every connection with the text, once a request was sent, and closes it. Only a body that it would have
// to ask for is left unread.
func rawServer(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				if r.Header.Get("Expect") == "" {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				_, _ = io.WriteString(conn, text)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// stuckServer begins every answer with the text and never goes on.
func stuckServer(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, text)
		_, _ = conn.Read(make([]byte, 1)) // until the gateway gives up
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAnUpstreamThatClosesIdleConnectionsIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(up.Close)
	w.register("/quote", up.URL)
	for range 3 {
		if a := w.call("GET", "/quote"); a.status != http.StatusOK || a.body != "ok" {
			t.Fatalf("answers %d %s", a.status, a.body)
		}
		up.CloseClientConnections()
	}
}

func TestAResponseThatBreaksOffBreaksOffForTheClient(t *testing.T) {
	w := newWorld(t)
	w.register("/quote", rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))
	resp, err := client.Get(w.front.URL + "/quote")
	if err != nil {
		return // nothing was sent yet
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the client takes %q for the whole answer", body)
	}
}

func TestStreamsAreFlushedAsTheyCome(t *testing.T) {
	w := newWorld(t)
	next := make(chan string)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case text := <-next:
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(up.Close)
	w.register("/stream", up.URL)
	w.must("POST", "/apis/stream/plugins", "name", "cors")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", w.front.URL+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines *bufio.Reader
	for i := range 3 {
		event := fmt.Sprintf("data: %d\n", i)
		go func() { next <- event }()
		if lines == nil {
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Error("the plugin's header is missing")
			}
			lines = bufio.NewReader(resp.Body)
		}
		if line, err := lines.ReadString('\n'); err != nil || line != event {
			t.Fatalf("got %q, %v", line, err)
		}
	}
}

func TestAClientThatGoesAwayCancelsTheUpstream(t *testing.T) {
	for _, method := range []string{"GET", "DELETE"} { // each way to the upstream
		w := newWorld(t)
		arrived, canceled := make(chan struct{}), make(chan struct{})
		up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/quick") {
				return
			}
			close(arrived)
			<-r.Context().Done()
			close(canceled)
		}))
		t.Cleanup(up.Close)
		w.register("/slow", up.URL)
		w.call("GET", "/slow/quick") // so that there is a connection, and nothing else to wait for
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, method, w.front.URL+"/slow", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { <-arrived; cancel() }()
		if resp, err := client.Do(r); err == nil {
			resp.Body.Close()
			t.Error("it was answered")
		}
		select {
		case <-canceled:
		case <-time.After(time.Minute):
			t.Errorf("%s: the upstream was not told", method)
		}
	}
}

func TestUpgradesPassThrough(t *testing.T) {
	w := newWorld(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		line, _ := buf.ReadString('\n')
		fmt.Fprintf(conn, "echo %s", line)
	}))
	t.Cleanup(up.Close)
	w.register("/ws", up.URL)
	w.must("POST", "/apis/ws/plugins", "name", "rate-limiting", "config.hour", "5")
	conn, err := net.Dial("tcp", w.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("X-RateLimit-Limit-hour") != "5" {
		t.Errorf("answered with %s %v", resp.Status, resp.Header)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestBodiesHeadersAndTrailersPassUntouched(t *testing.T) {
	w := newWorld(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header()["Content-Type"] = nil
		w.Header()["Date"] = []string{"Thu, 01 Jan 1970 00:00:00 GMT"}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %d %s", r.Method, len(body), r.Header.Get("Content-Type"))
		w.Header().Set("X-Sum", "42")
	}))
	t.Cleanup(up.Close)
	w.register("/quote", up.URL)
	for _, method := range []string{"POST", "PUT", "PATCH"} {
		resp, err := client.Do(mustRequest(t, method, w.front.URL+"/quote", strings.NewReader(strings.Repeat("x", 1<<20))))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != method+" 1048576 text/x" || resp.StatusCode != http.StatusTeapot {
			t.Errorf("%s answers %s %q %v", method, resp.Status, body, err)
		}
		if got := resp.Header; len(got["Set-Cookie"]) != 2 || got.Get("X-Hop") != "" || got["Content-Type"] != nil || got.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s has the headers %v", method, got)
		}
		if resp.Trailer.Get("X-Sum") != "42" {
			t.Errorf("%s has the trailer %v", method, resp.Trailer)
		}
	}
	resp, err := client.Do(mustRequest(t, "HEAD", w.front.URL+"/quote", nil))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTeapot {
		t.Errorf("HEAD answers %s", resp.Status)
	}
}

func mustRequest(t *testing.T, method, target string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/x")
	return r
}

func TestNothingMakesATunnelOfTheGateway(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	for _, line := range []string{"TRACE /quote", "CONNECT /quote", "CONNECT quote:80", "TRACE /nowhere"} {
		if status, body := w.raw(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); status != http.StatusMethodNotAllowed {
			t.Errorf("%s answers %d %s", line, status, body)
		}
	}
	for _, protocol := range []string{"h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.3"} {
		h := w.upstreamSaw("GET", "/quote", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", protocol, "HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA").Header
		if h["Upgrade"] != nil || h["Http2-Settings"] != nil || h["Connection"] != nil {
			t.Errorf("the upstream is asked to change to %s: %v", protocol, h)
		}
	}
}

func TestALoopEnds(t *testing.T) {
	w := newWorld(t)
	w.register("/loop", w.front.URL)
	if a := w.call("GET", "/loop"); a.status != http.StatusLoopDetected {
		t.Errorf("answers %d %s", a.status, a.body)
	}
}

func TestThePlatformsAPIsCanRunElsewhere(t *testing.T) {
	other := newWorld(t)
	w := newWorld(t, func(o *Options) {
		o.APIs = nil
		o.Remote = []Remote{{Name: "api", Version: "v1", URL: other.front.URL}}
	})
	w.must("POST", "/apis/api/plugins", "name", "cors")
	a := w.call("GET", "/api/latest/apps?x=1")
	if a.body != "manage /apps" || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("answers %d %s %v", a.status, a.body, a.header)
	}
	if a := w.call("GET", "/publish/v1/x"); a.status != http.StatusNotFound {
		t.Errorf("an API that is nowhere answers %d", a.status)
	}
}

func TestManyRequestsAtOnceGetTheirOwnAnswers(t *testing.T) {
	w := newWorld(t)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(r.URL.RawQuery+" ", 100))
	}))
	t.Cleanup(up.Close)
	w.register("/quote", up.URL)
	keeping := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer keeping.CloseIdleConnections()
	errs := make(chan error, 32)
	for worker := range 32 {
		go func() {
			for n := range 50 {
				query := fmt.Sprintf("%d-%d", worker, n)
				resp, err := keeping.Get(w.front.URL + "/quote?" + query)
				if err != nil {
					errs <- err
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(body) != strings.Repeat(query+" ", 100) {
					errs <- fmt.Errorf("%s got %.40q, %v", query, body, err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range 32 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
