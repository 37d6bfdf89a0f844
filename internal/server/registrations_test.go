package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/kong"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/store"
)

// TestWhatAnotherProcessRegistersIsAnsweredAsIfItWereDoneHere compares a process that writes with one that has to ask it: the same
// requests get the same answers, word for word.
func TestWhatAnotherProcessRegistersIsAnsweredAsIfItWereDoneHere(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	administration := func(remote bool) http.Handler {
		s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		nodes := memory.New(memory.Options{})
		t.Cleanup(func() { nodes.Close() })
		r := registry.New(s, nodes, registry.Options{Log: log})
		if remote {
			for _, stop := range answerRegistrations(nodes, r) {
				t.Cleanup(stop)
			}
			r = registry.New(s, nodes, registry.Options{Log: log, Writer: writer{nodes}})
		}
		return kong.New(kong.Options{Registry: r, Log: log})
	}
	here, elsewhere := administration(false), administration(true)
	for _, c := range []struct {
		call, form string
		status     int
		want       string
	}{
		{"POST /apis", "name=quote&request_path=/quote&upstream_url=http://x.example", 201, `"name":"quote"`},
		{"POST /apis", "name=quote&request_path=/quote&upstream_url=http://x.example", 409, `name already exists with value 'quote'`},
		{"POST /apis", "request_host=*.a.*&colour=red", 400, `"request_host":"Only one wildcard is allowed: *.a.*"`},
		{"PATCH /apis/quote", "request_path=", 400, `request_path is not a string`},
		{"PATCH /apis/quote", "preserve_host=true", 200, `"preserve_host":true`},
		{"PUT /apis/quote", "name=quote&request_host=x.example&upstream_url=https://x.example", 200, `"preserve_host":false`},
		{"PATCH /apis/api", "name=x", 405, `this API is built in`},
		{"DELETE /apis/none", "", 404, `"Not found"`},
		{"POST /apis/quote/plugins", "name=cors&config.max_age=7&config.credentials=&config.methods[]=GET", 400, `credentials is not a boolean`},
		{"POST /apis/quote/plugins", "name=cors&config.max_age=7&config.methods[]=GET", 201, `"max_age":7`},
		{"POST /apis/quote/plugins", "name=cors", 409, `"message":"Plugin configuration already exists"`},
		{"PATCH /apis/quote/plugins/cors", "config.max_age=8&enabled=false", 200, `"enabled":false`},
		{"POST /consumers", "username=bob", 201, `"username":"bob"`},
		{"POST /consumers/bob/key-auth", "key=sesame", 201, `"key":"sesame"`},
		{"POST /consumers/bob/key-auth", "", 201, `"key":"`},
		{"DELETE /consumers/bob/key-auth/blah", "", 400, `"id":"blah is an invalid uuid"`},
		{"DELETE /consumers/bob", "", 204, ""},
		{"DELETE /apis/quote", "", 204, ""},
	} {
		var bodies [2]string
		for i, h := range []http.Handler{here, elsewhere} {
			method, path, _ := strings.Cut(c.call, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(c.form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			bodies[i] = w.Body.String()
			if w.Code != c.status || !strings.Contains(bodies[i], c.want) {
				t.Errorf("%s %s answers %d %s, want %d %s", c.call, c.form, w.Code, bodies[i], c.status, c.want)
			}
		}
		if c.status >= 400 && bodies[0] != bodies[1] {
			t.Errorf("%s %s\nhere      %s\nelsewhere %s", c.call, c.form, bodies[0], bodies[1])
		}
	}
}

func TestAProcessThatMayNotWriteSaysWhatIsInTheWay(t *testing.T) {
	nodes := memory.New(memory.Options{})
	defer nodes.Close()
	_, err := writer{nodes}.WriteAPI(t.Context(), registry.APIWrite{})
	if freshet.KindOf(err) != freshet.Unavailable || !strings.Contains(err.Error(), "has to be written by a process with the role manage") {
		t.Errorf("nobody writes: %v", err)
	}
	long := strings.Repeat("x", maxRegistration)
	if _, err := (writer{nodes}).WriteConsumer(t.Context(), registry.ConsumerWrite{Change: registry.ConsumerChange{Username: &long}}); freshet.KindOf(err) != freshet.TooLarge {
		t.Errorf("too much to send: %v", err)
	}
	stop := answerTo(nodes, askAPI, func(_ context.Context, _ registry.APIWrite) (registered[freshet.API], error) {
		return outcome[freshet.API](nil, errors.New("secret"))
	})
	defer stop()
	if _, err := (writer{nodes}).WriteAPI(t.Context(), registry.APIWrite{}); freshet.KindOf(err) != freshet.Internal {
		t.Errorf("a failure of the writer: %v", err)
	}
}
