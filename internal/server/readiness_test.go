package server

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ask(t *testing.T, r *readiness) (int, report) {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	var rep report
	if err := json.Unmarshal(w.Body.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	return w.Code, rep
}

func TestReadyMeansServingWithEveryCheckPassed(t *testing.T) {
	fine := check{name: "store", ask: func(context.Context) error { return nil }}
	broken := check{name: "grid", ask: func(context.Context) error { return errors.New("no quorum") }}
	low := check{name: "store", note: func(context.Context) (string, error) { return "the disk is almost full", nil }}
	fullDisk := check{name: "store", note: func(context.Context) (string, error) { return "", errors.New("the disk of /data is full") }}
	away := check{name: "store", ask: func(context.Context) error { return errors.New("away") }, lenient: true}
	for _, c := range []struct {
		name   string
		phase  phase
		checks []check
		status int
		want   report
	}{
		{"starting", starting, nil, 503, report{Phase: "starting"}},
		{"serving", serving, nil, 200, report{Ready: true, Phase: "serving"}},
		{"serving with a check", serving, []check{fine}, 200, report{Ready: true, Phase: "serving", Checks: map[string]string{"store": "ok"}}},
		{"a broken dependency", serving, []check{fine, broken}, 503, report{Phase: "serving", Checks: map[string]string{"store": "ok", "grid": "no quorum"}}},
		{"a dependency that can be done without", serving, []check{away}, 200, report{Ready: true, Phase: "serving", Checks: map[string]string{"store": "away"}}},
		{"somebody should see to it", serving, []check{low}, 200, report{Ready: true, Phase: "serving", Checks: map[string]string{"store": "ok, but the disk is almost full"}}},
		{"nobody did", serving, []check{fullDisk}, 503, report{Phase: "serving", Checks: map[string]string{"store": "the disk of /data is full"}}},
		{"draining", draining, []check{fine}, 503, report{Phase: "draining", Checks: map[string]string{"store": "ok"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &readiness{}
			r.enter(c.phase)
			for _, check := range c.checks {
				r.add(check)
			}
			status, got := ask(t, r)
			if diff := cmp.Diff(c.want, got); status != c.status || diff != "" {
				t.Errorf("status %d, want (-), got (+):\n%s", status, diff)
			}
		})
	}
}

func TestHealthIsOneWordForAdmins(t *testing.T) {
	r := &readiness{parts: []string{"grid", "poll"}}
	for _, c := range []struct {
		enter      phase
		want, part string
	}{{starting, "starting", "starting"}, {serving, "ready", "ok"}, {draining, "draining", "draining"}} {
		r.enter(c.enter)
		if got, parts := r.Health(t.Context()); got != c.want || parts["grid"] != c.part || parts["poll"] != c.part {
			t.Errorf("%v: %s %v, want %s, and %s of each part", c.enter, got, parts, c.want, c.part)
		}
	}
	r.enter(serving)
	r.add(check{name: "grid", ask: func(context.Context) error { return errors.New("no quorum") }})
	if got, checks := r.Health(t.Context()); got != "failing" || checks["grid"] != "no quorum" {
		t.Errorf("%s %v", got, checks)
	}
}

func TestAProbeWaitsForTheSlowestCheckAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readiness{}
		r.enter(serving)
		for range 3 {
			r.add(check{name: "slow", ask: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		}
		begin := time.Now()
		if status, _ := ask(t, r); status != http.StatusServiceUnavailable || time.Since(begin) != checkTimeout {
			t.Errorf("status %d after %s", status, time.Since(begin))
		}
	})
}

func TestWebPagesCannotUseTheAdminListener(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8001}
	everywhere := &net.TCPAddr{IP: net.IPv4zero, Port: 8001}
	for _, c := range []struct {
		name    string
		address net.Addr
		method  string
		host    string
		origin  string
		want    int
	}{
		{"curl", loopback, "POST", "127.0.0.1:8001", "", 204},
		{"curl by name", loopback, "GET", "localhost:8001", "", 204},
		{"IPv6", loopback, "GET", "[::1]:8001", "", 204},
		{"IPv6 without a port", loopback, "GET", "[::1]", "", 204},
		{"DNS rebinding", loopback, "GET", "evil.example:8001", "", 403},
		{"a form on another site", loopback, "POST", "127.0.0.1:8001", "https://evil.example", 403},
		{"a page of ours", loopback, "POST", "127.0.0.1:8001", "http://127.0.0.1:8001", 204},
		{"another name where the operator opened it", everywhere, "GET", "admin.internal:8001", "", 204},
		{"a form on another site there", everywhere, "POST", "admin.internal:8001", "https://evil.example", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := guardAdmin(c.address, "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
			req := httptest.NewRequest(c.method, "/apis/", nil)
			req.Host = c.host
			if c.origin != "" {
				req.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if w.Code != c.want {
				t.Errorf("got %d, want %d", w.Code, c.want)
			}
		})
	}
}
