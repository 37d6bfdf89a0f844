package gateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet/internal/registry"
)

// TestTheAdministrationListenerIsNoUpstream however it came to be registered: a name may mean something else by then, and another
// node may have another address.
func TestTheAdministrationListenerIsNoUpstream(t *testing.T) {
	var reached atomic.Int64
	admin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer admin.Close()
	_, port, _ := net.SplitHostPort(admin.Listener.Addr().String())
	w := newWorld(t, func(o *Options) { o.Barred = registry.Bar(admin.Listener.Addr()) })
	for path, upstream := range map[string]string{"/a": "http://127.0.0.1:" + port, "/b": "http://localhost:" + port, "/c": "http://0.0.0.0:" + port + "/deep"} {
		w.register(path, upstream)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r, err := http.NewRequestWithContext(t.Context(), method, w.front.URL+path, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode < 500 {
				t.Errorf("%s %s answers %d", method, upstream, answer.StatusCode)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests got through", n)
	}
	if !strings.Contains(w.logs.String(), "administration listener") {
		t.Error("the log does not say why")
	}
}
