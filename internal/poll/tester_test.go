package poll

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

func newTester(t *testing.T, o Options) *Tester {
	t.Helper()
	g := memory.New(memory.Options{})
	r := router.New(g, router.Options{})
	tester := NewTester(r, o)
	t.Cleanup(func() {
		tester.Close()
		_ = r.Close()
		_ = g.Close()
	})
	return tester
}

func sourceAt(url string) *catalog.Source {
	return &catalog.Source{Topic: freshet.Topic{AppID: "app", Publisher: freshet.Publisher{
		Type: freshet.HTTPPoller, URL: url, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
		Credentials: freshet.Credentials{Headers: []freshet.HeaderField{header("X-Api-Key", "s3cret")}},
	}}}
}

func try(t *testing.T, tester *Tester, s *catalog.Source) *catalog.Trial {
	t.Helper()
	trial, err := tester.Try(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

func TestATrialShowsWhatWouldBePublished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/quotes", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, `{ "big": 12345678901234567890 }`)
	})
	got := try(t, newTester(t, Options{}), sourceAt(o.URL+"/moved"))
	if got.Failure != nil || got.Status != 200 || got.Bytes != 31 || string(got.Document) != `{"big":12345678901234567890}` {
		t.Errorf("%+v %s", got, got.Document)
	}
	if got := o.last().Header.Get("X-Api-Key"); got != "s3cret" {
		t.Errorf("the target got the key %q", got)
	}
}

func TestATrialOfItemsShowsTheItems(t *testing.T) {
	t.Parallel()
	body := `[{"id":"a","n":1},{"id":"a","n":2},{"n":3}]`
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	tester, source := newTester(t, Options{}), sourceAt(o.URL)
	path := func(text string) {
		p, err := freshet.ParseItemPath(text)
		if err != nil {
			t.Fatal(err)
		}
		source.Topic.Publisher.Payload = freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: p}
	}
	path(".id")
	if got := try(t, tester, source); string(got.Document) != `[{"id":"a","n":2}]` {
		t.Errorf("%+v %s", got, got.Document)
	}
	path(".no")
	if got := try(t, tester, source); got.Document != nil || !strings.Contains(got.Failure.Error(), "identifier") {
		t.Errorf("%+v", got)
	}
	body = `[]`
	if got := try(t, tester, source); string(got.Document) != `[]` || got.Failure != nil {
		t.Errorf("%+v", got)
	}
}

func TestATrialSaysWhyNothingWouldBePublished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/html":
			_, _ = io.WriteString(w, "<p>hello")
		case "/large":
			_, _ = io.WriteString(w, `"`+strings.Repeat("x", 2000)+`"`)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	open, guarded := newTester(t, Options{MaxBody: 1000}), newTester(t, Options{DenyPrivate: true})
	elsewhere := sourceAt(o.URL)
	elsewhere.AllowedHosts = []string{"example.com"}
	for name, test := range map[string]struct {
		tester *Tester
		source *catalog.Source
		status int
		kind   freshet.Kind
	}{
		"not JSON":          {open, sourceAt(o.URL + "/html"), 200, freshet.Invalid},
		"too large":         {open, sourceAt(o.URL + "/large"), 200, freshet.SourceUnreadable},
		"refused":           {open, sourceAt(o.URL), 403, freshet.SourceForbidden},
		"nobody there":      {open, sourceAt("http://127.0.0.1:1/"), 0, freshet.SourceUnreachable},
		"internal address":  {guarded, sourceAt(o.URL), 0, freshet.SourceUnreachable},
		"host not allowed":  {open, elsewhere, 0, freshet.SourceUnreachable},
		"metadata of cloud": {guarded, sourceAt("http://169.254.169.254/latest/"), 0, freshet.SourceUnreachable},
	} {
		got := try(t, test.tester, test.source)
		if got.Document != nil || got.Status != test.status || freshet.KindOf(got.Failure) != test.kind || strings.Contains(got.Failure.Error(), "127.0.0.1") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOneAccountLeavesTrialsToOthers(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, maxTrials), make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drip" {
			arrived <- struct{}{}
			<-release
		}
		_, _ = io.WriteString(w, `{}`)
	})
	tester := newTester(t, Options{})
	of := func(userID, path string) *catalog.Source {
		s := sourceAt(o.URL + path)
		s.UserID = userID
		return s
	}
	results := make(chan error, maxTrials)
	for range maxTrials {
		go func() {
			_, err := tester.Try(t.Context(), of("eve", "/drip"))
			results <- err
		}()
	}
	for range maxTrials - trialsPerAccount {
		wantBusy(t, <-results)
	}
	for range trialsPerAccount {
		<-arrived
	}
	if got := try(t, tester, of("ada", "/")); got.Failure != nil {
		t.Errorf("%+v", got)
	}
	close(release)
	for range trialsPerAccount {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	try(t, tester, of("eve", "/")) // and its places are free again
	if len(tester.trials) > 0 {
		t.Errorf("accounts are remembered: %v", tester.trials)
	}
}

func TestTrialsAreBounded(t *testing.T) {
	t.Parallel()
	tester := newTester(t, Options{})
	for i := range maxTrials {
		tester.trials[fmt.Sprint(i)] = 1
	}
	_, err := tester.Try(t.Context(), sourceAt("http://127.0.0.1:1/"))
	wantBusy(t, err)
}

// wantBusy expects the answer to one trial too many: the caller's to repeat, and no failure of ours.
func wantBusy(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*freshet.Error](err)
	if !ok || e.Kind != freshet.TooManyRequests || e.RetryAfter <= 0 {
		t.Errorf("one too many: %v", err)
	}
}
