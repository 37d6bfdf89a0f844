package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/store"
)

// wantHeader compares a header by its exact spelling; "" means that it must not be there.
func wantHeader(t *testing.T, h http.Header, name, want string) {
	t.Helper()
	if got := strings.Join(h[http.CanonicalHeaderKey(name)], "|"); got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func TestCORS(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/open", up.URL)
	w.must("POST", "/apis/open/plugins", "name", "cors")
	w.register("/own", up.URL)
	w.must("POST", "/apis/own/plugins", "name", "cors", "config.origin", "https://example.com", "config.methods", "GET", "config.headers", "origin, type",
		"config.exposed_headers", "x-auth-token", "config.max_age", "23", "config.credentials", "true")
	w.register("/on", up.URL)
	w.must("POST", "/apis/on/plugins", "name", "cors", "config.preflight_continue", "true", "config.credentials", "true")
	const prefix = "Access-Control-"
	for _, c := range []struct {
		method, path string
		status       int
		want         map[string]string
	}{
		{"OPTIONS", "/open", 204, map[string]string{"Allow-Origin": "*", "Allow-Methods": "GET,HEAD,PUT,PATCH,POST,DELETE", "Allow-Headers": "x-a, x-b"}},
		{"GET", "/open", 200, map[string]string{"Allow-Origin": "*"}},
		{"OPTIONS", "/own", 204, map[string]string{"Allow-Origin": "https://example.com", "Allow-Methods": "GET", "Allow-Headers": "origin,type",
			"Max-Age": "23", "Allow-Credentials": "true"}},
		{"GET", "/own", 200, map[string]string{"Allow-Origin": "https://example.com", "Expose-Headers": "x-auth-token", "Allow-Credentials": "true"}},
		{"OPTIONS", "/on", 200, map[string]string{"Allow-Origin": "*", "Allow-Methods": "GET,HEAD,PUT,PATCH,POST,DELETE", "Allow-Headers": "x-a, x-b"}},
	} {
		a := w.call(c.method, c.path, "Access-Control-Request-Headers", "x-a, x-b")
		if a.status != c.status {
			t.Errorf("%s %s answers %d", c.method, c.path, a.status)
		}
		for _, name := range []string{"Allow-Origin", "Allow-Methods", "Allow-Headers", "Max-Age", "Allow-Credentials", "Expose-Headers"} {
			wantHeader(t, a.header, prefix+name, c.want[name])
		}
	}
	wantHeader(t, w.call("GET", "/own").header, "Vary", "Origin")
}

func TestKeyAuth(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/seen", up.URL)
	w.must("POST", "/apis/seen/plugins", "name", "key-auth")
	w.register("/hidden", up.URL)
	w.must("POST", "/apis/hidden/plugins", "name", "key-auth", "config.key_names", "apikey,X-Key", "config.hide_credentials", "true")
	id := w.must("POST", "/consumers", "username", "bob", "custom_id", "b-1")
	w.must("POST", "/consumers/bob/key-auth", "key", "apikey 123&")

	for _, target := range []string{"/seen", "/seen?apikey123=x", "/hidden?key=x"} {
		a := w.call("GET", target)
		if a.status != http.StatusUnauthorized || a.body != `{"message":"No API Key found in headers, body or querystring"}`+"\n" {
			t.Errorf("%s answers %d %s", target, a.status, a.body)
		}
		wantHeader(t, a.header, "WWW-Authenticate", `Key realm="freshet"`)
	}
	for _, c := range [][]string{{"/seen?apikey=asd"}, {"/seen?apikey="}, {"/seen", "apikey", "asd"}, {"/seen?apikey=asd", "apikey", "dsa"}} {
		a := w.call("GET", c[0], c[1:]...)
		if a.status != http.StatusForbidden || a.body != `{"message":"Invalid authentication credentials"}`+"\n" {
			t.Errorf("%v answers %d %s", c, a.status, a.body)
		}
	}
	for _, c := range []struct {
		target string
		header []string
		want   string
	}{
		{"/seen?a=1&apikey=apikey+123%26&b=%7e", nil, "/seen?a=1&apikey=apikey+123%26&b=%7e"},
		{"/seen?a=1", []string{"apikey", "apikey 123&"}, "/seen?a=1"},
		{"/seen?apikey=wrong", []string{"APIKEY", "apikey 123&"}, "/seen?apikey=wrong"},
		{"/hidden?a=1&apikey=apikey%20123%26&b=%7e;c", nil, "/hidden?a=1&b=%7e;c"},
		{"/hidden?X-Key=apikey%20123%26", []string{"x-key", "apikey 123&"}, "/hidden"},
	} {
		// To name a header in Connection is to have it removed on the way; ours must not be.
		s := w.upstreamSaw("GET", c.target, append(c.header, "X-Consumer-ID", "evil", "X-Consumer-Username", "evil",
			"Connection", "x-consumer-id, X-Hop , X-CONSUMER-USERNAME", "Connection", "X-Consumer-Custom-ID", "X-Hop", "1")...)
		if s.Header.Get("X-Hop") != "" {
			t.Errorf("%s: what ends at this hop came through", c.target)
		}
		if s.Target != c.want {
			t.Errorf("%s reaches the upstream as %s, want %s", c.target, s.Target, c.want)
		}
		wantHeader(t, s.Header, "X-Consumer-ID", id)
		wantHeader(t, s.Header, "X-Consumer-Username", "bob")
		wantHeader(t, s.Header, "X-Consumer-Custom-ID", "b-1")
		if strings.HasPrefix(c.target, "/hidden") && s.Header.Get("X-Key")+s.Header.Get("Apikey") != "" {
			t.Errorf("%s: the key came through", c.target)
		}
	}
	if logs := w.logs.String(); strings.Contains(logs, "apikey") {
		t.Errorf("a key is in the log:\n%s", logs)
	}
}

func TestAKeyWorksAsLongAsItExists(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	w.must("POST", "/apis/quote/plugins", "name", "key-auth")
	w.must("POST", "/consumers", "username", "bob")
	status := func(key string) int { return w.call("GET", "/quote", "apikey", key).status }
	id := w.must("POST", "/consumers/bob/key-auth", "key", "one")
	if status("one") != 200 || status("two") != 403 {
		t.Error("a new key does not work at once")
	}
	w.must("PATCH", "/consumers/bob/key-auth/"+id, "key", "two")
	if status("one") != 403 || status("two") != 200 {
		t.Error("a changed key does not work at once, or the old one still does")
	}
	w.must("DELETE", "/consumers/bob/key-auth/"+id)
	if status("two") != 403 {
		t.Error("a deleted key works")
	}
	w.must("POST", "/consumers/bob/key-auth", "key", "three")
	w.must("DELETE", "/consumers/bob")
	if status("three") != 403 {
		t.Error("the key of a deleted consumer works")
	}
	plugins := w.administer("GET", "/apis/quote/plugins")
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(plugins.body), &list); err != nil {
		t.Fatal(err)
	}
	w.must("PATCH", "/plugins/"+list.Data[0].ID, "enabled", "false")
	if status("three") != 200 {
		t.Error("a disabled plugin runs")
	}
}

func TestRateLimitsFollowTheClock(t *testing.T) {
	at := &clock{now: time.Date(2026, 12, 31, 23, 59, 58, 0, time.UTC)}
	w := newWorld(t, func(o *Options) { o.Now = at.Now })
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	w.must("POST", "/apis/quote/plugins", "name", "rate-limiting", "config.minute", "3", "config.hour", "5")
	want := func(status int, minute, hour string) {
		t.Helper()
		a := w.call("GET", "/quote")
		if a.status != status {
			t.Errorf("answers %d %s", a.status, a.body)
		}
		wantHeader(t, a.header, "X-RateLimit-Limit-minute", "3")
		wantHeader(t, a.header, "X-RateLimit-Remaining-minute", minute)
		wantHeader(t, a.header, "X-RateLimit-Limit-hour", "5")
		wantHeader(t, a.header, "X-RateLimit-Remaining-hour", hour)
		if status == 429 && a.body != `{"message":"API rate limit exceeded"}`+"\n" {
			t.Errorf("says %s", a.body)
		}
	}
	want(200, "2", "4")
	want(200, "1", "3")
	want(200, "0", "2")
	want(429, "0", "2") // what is refused uses nothing up
	want(429, "0", "2")
	at.set(at.Now().Add(2 * time.Second)) // a new year, and so a new everything
	want(200, "2", "4")
	at.set(at.Now().Add(time.Minute))
	want(200, "2", "3")
	want(200, "1", "2")
	at.set(at.Now().Add(time.Minute))
	want(200, "2", "1")
	want(200, "1", "0")
	want(429, "1", "0")
}

func TestWindowsBeginWhereTheCalendarSays(t *testing.T) {
	at := time.Date(2028, 2, 29, 12, 34, 56, 789, time.UTC)
	for i, want := range []string{
		"2028-02-29T12:34:56Z 2028-02-29T12:34:57Z", "2028-02-29T12:34:00Z 2028-02-29T12:35:00Z", "2028-02-29T12:00:00Z 2028-02-29T13:00:00Z",
		"2028-02-29T00:00:00Z 2028-03-01T00:00:00Z", "2028-02-01T00:00:00Z 2028-03-01T00:00:00Z", "2028-01-01T00:00:00Z 2029-01-01T00:00:00Z",
	} {
		begin := periods[i].begin(at)
		if got := begin.Format(time.RFC3339) + " " + periods[i].next(begin).Format(time.RFC3339); got != want {
			t.Errorf("%s is %s, want %s", periods[i].name, got, want)
		}
	}
}

func TestRateLimitsAreExactUnderConcurrencyAndPerConsumer(t *testing.T) {
	at := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t, func(o *Options) { o.Now = at.Now })
	other := newNode(t, w.store, w.grid, func(o *Options) { o.Now = at.Now })
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	w.must("POST", "/apis/quote/plugins", "name", "key-auth")
	w.must("POST", "/apis/quote/plugins", "name", "rate-limiting", "config.minute", "20", "config.day", "25")
	bob := w.must("POST", "/consumers", "username", "bob")
	w.must("POST", "/apis/quote/plugins", "name", "rate-limiting", "config.minute", "7", "consumer_id", bob)
	w.must("POST", "/consumers", "username", "eve")
	w.must("POST", "/consumers/bob/key-auth", "key", "bob")
	w.must("POST", "/consumers/eve/key-auth", "key", "eve")
	if err := other.follower.CatchUp(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	burst := func(key string) (passed int64) {
		var n atomic.Int64
		var wg sync.WaitGroup
		for i := range 60 {
			node := []*world{w, other}[i%2]
			wg.Go(func() {
				if a := node.call("GET", "/quote", "apikey", key, "X-Forwarded-For", fmt.Sprint("10.0.0.", i)); a.status == 200 {
					n.Add(1)
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	if got := burst("eve"); got != 20 {
		t.Errorf("%d requests passed in the minute, want 20", got)
	}
	if got := burst("bob"); got != 7 {
		t.Errorf("%d requests of bob passed, want 7", got)
	}
	at.set(at.Now().Add(time.Minute))
	if got := burst("eve"); got != 5 {
		t.Errorf("%d requests passed in the rest of the day, want 5", got)
	}
}

// brokenCounter cannot be reached.
type brokenCounter struct{}

func (brokenCounter) Add(context.Context, string, int64, time.Duration) (int64, error) {
	return 0, freshet.Errorf(freshet.Unavailable, "away")
}

func TestWithoutItsCounterAnAPIStaysOpen(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Counter = brokenCounter{} })
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	w.must("POST", "/apis/quote/plugins", "name", "rate-limiting", "config.minute", "1")
	for range 3 {
		if a := w.call("GET", "/quote"); a.status != http.StatusOK {
			t.Errorf("answers %d", a.status)
		}
	}
}

func TestRequestSizes(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	w.must("POST", "/apis/quote/plugins", "name", "request-size-limiting", "config.allowed_payload_size", "1")
	post := func(size int, known bool, header ...string) got {
		var body io.Reader = strings.NewReader(strings.Repeat("x", size))
		if !known {
			body = io.MultiReader(body) // no length to announce
		}
		r := mustRequest(t, "POST", w.front.URL+"/quote", body)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return send(t, r)
	}
	for _, c := range []struct {
		size   int
		known  bool
		status int
	}{{1 << 20, true, 200}, {1<<20 + 1, true, 413}, {1 << 20, false, 200}, {1<<20 + 1, false, 413}, {10, false, 200}} {
		if a := post(c.size, c.known); a.status != c.status {
			t.Errorf("%d bytes (announced: %v) answer %d %s", c.size, c.known, a.status, a.body)
		}
	}
	if a := post(2<<20, true, "Expect", "100-continue"); a.status != http.StatusExpectationFailed || a.body != `{"message":"Request size limit exceeded"}`+"\n" {
		t.Errorf("who asks first is told %d %s", a.status, a.body)
	}
}

func TestIPRestriction(t *testing.T) {
	w := newWorld(t, trust("127.0.0.1/32"))
	up := newUpstreamServer(t)
	w.register("/in", up.URL)
	w.must("POST", "/apis/in/plugins", "name", "ip-restriction", "config.whitelist", "10.1.0.0/16, 2001:db8::/32,192.0.2.7")
	w.register("/out", up.URL)
	w.must("POST", "/apis/out/plugins", "name", "ip-restriction", "config.blacklist", "10.1.0.0/16")
	for _, c := range []struct {
		path, client string
		status       int
	}{
		{"/in", "10.1.2.3", 200}, {"/in", "2001:db8::1", 200}, {"/in", "192.0.2.7", 200}, {"/in", "::ffff:192.0.2.7", 200},
		{"/in", "10.2.0.1", 403}, {"/in", "", 403}, {"/out", "10.1.2.3", 403}, {"/out", "10.2.0.1", 200},
	} {
		header := []string{}
		if c.client != "" {
			header = []string{"X-Forwarded-For", c.client}
		}
		a := w.call("GET", c.path, header...)
		if a.status != c.status || c.status == 403 && a.body != `{"message":"Your IP address is not allowed"}`+"\n" {
			t.Errorf("%s from %q answers %d %s", c.path, c.client, a.status, a.body)
		}
	}
}

func TestPluginsOnThePlatformsOwnAPIs(t *testing.T) {
	w := newWorld(t)
	w.must("POST", "/apis/publish/plugins", "name", "key-auth")
	w.must("POST", "/apis/api/plugins", "name", "rate-limiting", "config.second", "1000")
	if a := w.call("POST", "/publish/v1/topics/x"); a.status != http.StatusUnauthorized {
		t.Errorf("answers %d %s", a.status, a.body)
	}
	a := w.call("GET", "/api/latest/apps")
	if a.body != "manage /apps" {
		t.Errorf("answers %d %s", a.status, a.body)
	}
	wantHeader(t, a.header, "X-RateLimit-Limit-second", "1000")
}

func TestPluginsOverruleWhatTheUpstreamSays(t *testing.T) {
	m := &marked{ResponseWriter: newRecorder(), header: []mark{{"X-RateLimit-Limit-minute", []string{"5"}}, {"Vary", []string{"Origin"}}}}
	m.Header().Set("X-RateLimit-Limit-Minute", "600000")
	m.Header().Set("Vary", "Accept")
	m.WriteHeader(http.StatusOK)
	if got := fmt.Sprint(m.Header()); got != "map[Vary:[Accept Origin] X-RateLimit-Limit-minute:[5]]" {
		t.Errorf("the answer says %s", got)
	}
}

func TestAnAPIWithAPluginOfTheFutureRefusesEverything(t *testing.T) {
	w := newWorld(t)
	up := newUpstreamServer(t)
	w.register("/quote", up.URL)
	api, err := w.store.API(t.Context(), "quote")
	if err != nil {
		t.Fatal(err)
	}
	err = w.store.Update(t.Context(), func(tx *store.Tx) error {
		revision, err := tx.Registering()
		if err != nil {
			return err
		}
		return tx.CreatePlugin(&freshet.Plugin{ID: freshet.NewID(), APIID: api.ID, Name: "quantum-auth", Config: []byte("{}"), Enabled: true}, revision)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.follower.CatchUp(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if a := w.call("GET", "/quote"); a.status != http.StatusServiceUnavailable {
		t.Errorf("answers %d %s", a.status, a.body)
	}
}

func TestEveryKindOfPluginCanRun(t *testing.T) {
	names := registry.KindNames()
	for _, name := range names {
		if makers[name] == nil {
			t.Errorf("%s can be registered, but not run", name)
		}
	}
	if len(makers) != len(names) {
		t.Errorf("%d kinds can be run, %d registered", len(makers), len(names))
	}
}

func TestEveryPeriodCanBeConfigured(t *testing.T) {
	fields := registry.SchemaOf("rate-limiting").Fields
	for _, p := range periods {
		if _, known := fields[p.name]; !known {
			t.Errorf("%s cannot be configured", p.name)
		}
	}
	if len(fields) != len(periods) {
		t.Errorf("%d can be configured, %d are counted", len(fields), len(periods))
	}
}
