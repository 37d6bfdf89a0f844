package poll

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet"
)

func withOAuth2(tg *endpoint, tokenURL string) *endpoint {
	tg.credentials.OAuth2 = &freshet.OAuth2{TokenURL: tokenURL, ClientID: "id", ClientSecret: "client secret", Scopes: []string{"a", "b"}}
	return tg
}

func TestATokenIsFetchedOnceAndReplacedWhenRefused(t *testing.T) {
	var made atomic.Int32
	endpoint := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "id" || secret != "client+secret" || r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("scope") != "a b" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"t%d","token_type":"bearer","expires_in":3600}`, made.Add(1))
	})
	var refuse atomic.Value
	refuse.Store("")
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == refuse.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "%q", r.Header.Get("Authorization"))
	})
	c := testClient(t)
	ask := func() string {
		t.Helper()
		got, err := c.fetch(t.Context(), &request{endpoint: withOAuth2(targetOf(t, o.URL), endpoint.URL)})
		if err != nil {
			t.Fatal(err)
		}
		return string(got.body)
	}
	for range 3 {
		if got := ask(); got != `"Bearer t1"` {
			t.Errorf("the target got %s", got)
		}
	}
	refuse.Store("Bearer t1")
	if got := ask(); got != `"Bearer t2"` || made.Load() != 2 {
		t.Errorf("after a 401 the target got %s, %d tokens", got, made.Load())
	}
}

func TestATokenIsRenewedBeforeItExpires(t *testing.T) {
	var made atomic.Int32
	endpoint := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"t%d","expires_in":1}`, made.Add(1))
	})
	c := testClient(t)
	tg := withOAuth2(targetOf(t, "http://192.0.2.1/"), endpoint.URL)
	if _, fresh, err := c.tokens.get(t.Context(), c, tg); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	e := c.tokens.entry(tg)
	if left := e.renewAt.Sub(e.renewAt.Truncate(0)); left != 0 || e.renewAt.IsZero() {
		t.Errorf("it is renewed at %v", e.renewAt)
	}
	e.renewAt = e.renewAt.Add(-longestMargin) // its time has come
	if text, fresh, err := c.tokens.get(t.Context(), c, tg); err != nil || !fresh || text != "t2" {
		t.Errorf("got %q, %t, %v", text, fresh, err)
	}
}

func TestFailuresOfTheTokenEndpointAreTheSources(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		kind   freshet.Kind
	}{
		"wrong secret": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, freshet.SourceUnauthorized},
		"down":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, freshet.SourceFailed},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, freshet.SourceUnauthorized},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "client secret") }, freshet.SourceFailed},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := newOrigin(t, test.answer)
			_, err := testClient(t).fetch(t.Context(), &request{endpoint: withOAuth2(targetOf(t, "http://192.0.2.1/"), endpoint.URL)})
			wantFailure(t, err, test.kind)
		})
	}
}
