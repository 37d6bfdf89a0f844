package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

// script is a transport that gives prepared answers, one after the other, and remembers what it was asked.
type script struct {
	answers []func(*http.Request) (*http.Response, error)
	asked   []*http.Request
	bodies  []string
	at      []time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		body = string(text)
	}
	n := min(len(s.asked), len(s.answers)-1)
	s.asked, s.bodies, s.at = append(s.asked, r), append(s.bodies, body), append(s.at, time.Now())
	return s.answers[n](r)
}

func says(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func breaks(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }

func scripted(t *testing.T, answers ...func(*http.Request) (*http.Response, error)) (*client.Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	c, err := client.New(client.Options{Token: "secret-token", HTTPClient: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

const someApp = `{"id":"a","name":"Quotes"}`

func TestCallsAreRepeatedOnlyWhereThatDoesNoHarm(t *testing.T) {
	busy := says(503, `{"message":"busy"}`)
	later := says(429, `{"message":"slow down"}`, "Retry-After", "2")
	long := says(429, `{"message":"slow down"}`, "Retry-After", "3600")
	read := func(ctx context.Context, c *client.Client) error { _, err := c.App(ctx, "a"); return err }
	create := func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateApp(ctx, client.AppChange{Name: client.Set("x")})
		return err
	}
	renew := func(ctx context.Context, c *client.Client) error {
		_, err := c.RenewKey(ctx, "a", freshet.PublisherKey, client.Renewal{})
		return err
	}
	publish := func(key string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.Publish(ctx, "t", []byte(`1`), client.PublishOptions{IdempotencyKey: key})
			return err
		}
	}
	for _, x := range []struct {
		name     string
		do       func(context.Context, *client.Client) error
		first    func(*http.Request) (*http.Response, error)
		attempts int
	}{
		{"reading after silence", read, breaks, 2},
		{"reading after 503", read, busy, 2},
		{"reading after 502", read, says(502, "<html>"), 2},
		{"reading after 500", read, says(500, `{"message":"oops"}`), 1},
		{"reading after 404", read, says(404, `{"message":"no"}`), 1},
		{"making after silence", create, breaks, 1},
		{"making after 503", create, busy, 1},
		{"making after 429", create, later, 2},
		{"making after a long wait", create, long, 1},
		{"renewing after silence", renew, breaks, 1},
		{"publishing after silence", publish(""), breaks, 1},
		{"publishing after silence with a key", publish("once"), breaks, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, x.first, says(200, someApp))
				err := x.do(t.Context(), c)
				if len(s.asked) != x.attempts || (err == nil) != (x.attempts == 2) {
					t.Errorf("%d attempts, %v", len(s.asked), err)
				}
				if x.attempts == 2 && s.bodies[0] != s.bodies[1] {
					t.Errorf("the second attempt says %q after %q", s.bodies[1], s.bodies[0])
				}
			})
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, says(429, `{"message":"x"}`, "Retry-After", "7"), says(200, someApp))
		if _, err := c.App(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if waited := s.at[1].Sub(s.at[0]); waited < 7*time.Second || waited > 8*time.Second {
			t.Errorf("it came back after %v", waited)
		}
	})
}

func TestItGivesUpAfterSomeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, breaks)
		_, err := c.App(t.Context(), "a")
		if e, ok := errors.AsType[*client.UnreachableError](err); !ok || len(s.asked) != 4 || e.URL != client.DefaultBaseURL {
			t.Errorf("%d attempts, %v", len(s.asked), err)
		}
	})
}

func TestErrorsOfBothDialects(t *testing.T) {
	for body, want := range map[string]*client.Error{
		`{"message":"The request is not valid","errors":[{"field":"name","message":"is required"}]}`: {
			Status: 400, Message: "The request is not valid", Fields: []freshet.FieldError{{Field: "name", Message: "is required"}}},
		`{"upstream_url":"upstream_url is required","name":"name already exists with value 'x'"}`: {
			Status: 400, Message: "The request is not valid", Fields: []freshet.FieldError{
				{Field: "name", Message: "already exists with value 'x'"}, {Field: "upstream_url", Message: "is required"}}},
		`<html>`: {Status: 400, Message: "The server answered Bad Request"},
	} {
		c, _ := scripted(t, says(400, body))
		_, err := c.App(t.Context(), "a")
		got, _ := errors.AsType[*client.Error](err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", body, diff)
		}
	}
}

func TestKeysAndTokensGoWhereTheyBelong(t *testing.T) {
	c, s := scripted(t, says(204, "", "ETag", `W/"e-7"`))
	done, err := c.Publish(t.Context(), "../t", []byte(`1`), client.PublishOptions{Key: "k", IfMatch: "e-6", IdempotencyKey: "i"})
	if err != nil || done.Version != "e-7" {
		t.Errorf("%+v, %v", done, err)
	}
	h := s.asked[0].Header
	if h.Get("Authorization") != "" || h.Get("X-Sd-Publisher-Key") != "k" || h.Get("If-Match") != `"e-6"` || h.Get("Idempotency-Key") != "i" {
		t.Errorf("headers %v", h)
	}
	if got := s.asked[0].URL.RequestURI(); got != "/publish/v1/topics/..%2Ft" {
		t.Errorf("it asked for %s", got)
	}
	if _, err := c.Gateway().CreateConsumer(t.Context(), client.Fields{"username": "x"}); err == nil || s.asked[1].Header.Get("Authorization") != "" {
		t.Errorf("the administration got the token, %v", err)
	}
}

func TestChangesSayOnlyWhatIsSet(t *testing.T) {
	c, s := scripted(t, says(200, someApp))
	change := client.AppChange{AutoProvisioningAllowed: client.Set(false), DefaultConfigurations: client.Set(client.DefaultsChange{
		Poller: client.Set(client.PollerDefaults{PollingFrequency: client.Reset[int64]()}),
	})}
	if _, err := c.UpdateApp(t.Context(), "a", change); err != nil {
		t.Fatal(err)
	}
	if got := s.bodies[0]; got != `{"auto_provisioning_allowed":false,"default_configurations":{"http-poller":{"polling_frequency":null}}}` {
		t.Errorf("it sent %s", got)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the key went along to %s", r.Host)
	}))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusPermanentRedirect))
	defer here.Close()
	c, err := client.New(client.Options{BaseURL: here.URL, SubscriberURL: here.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	_, err = c.Publish(t.Context(), "t", []byte("1"), client.PublishOptions{Key: "k"})
	if client.StatusOf(err) != http.StatusPermanentRedirect || !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("publishing: %v", err)
	}
	if err := last(t, c, "t", client.SubscribeOptions{Key: "k"}); client.StatusOf(err) != http.StatusPermanentRedirect {
		t.Errorf("subscribing: %v", err)
	}
}

// trickle is a body that says something, and then nothing until its request ends.
type trickle struct {
	io.Reader
	r *http.Request
}

func (b *trickle) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.r.Context().Done()
	return 0, b.r.Context().Err()
}
func (*trickle) Close() error { return nil }

func streams(text string, ends bool) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, _ := says(200, text, "Content-Type", "text/event-stream")(r)
		if !ends {
			resp.Body = &trickle{strings.NewReader(text), r}
		}
		return resp, nil
	}
}

func TestASilentConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, streams("id: e-1\nevent: snapshot\ndata: 1\n\n", false), streams("id: e-2\nevent: snapshot\ndata: 2\n\n", true))
		var ended error
		o := client.SubscribeOptions{OnState: func(st client.State) {
			if st.Phase == client.Waiting && ended == nil {
				ended = st.Err
			}
		}}
		began := time.Now()
		for e, err := range c.Subscribe(t.Context(), "t", o) {
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Document) == "2" {
				break
			}
			time.Sleep(time.Hour) // what the program does takes its time, and is no silence
		}
		if !errors.Is(ended, client.ErrSilent) || s.asked[1].Header.Get("Last-Event-ID") != "e-1" {
			t.Errorf("the first connection ended with %v", ended)
		}
		if waited := time.Since(began) - time.Hour; waited < 25*time.Second || waited > 27*time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

func TestRetryIsHonouredAndPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t,
			streams("retry: 4000\n\nid: e-1\nevent: snapshot\ndata: 1\n\n", true), breaks, breaks, says(502, "<html>"),
			streams(`retry: 20000`+"\n"+`event: error`+"\n"+`data: {"code":50000,"category":"ServerException","message":"going away"}`+"\n\n", true),
			streams("id: e-2\nevent: patch\ndata: [{\"op\":\"add\",\"path\":\"\",\"value\":2}]\n\n", true))
		var kinds []client.EventKind
		for e, err := range c.Subscribe(t.Context(), "t", client.SubscribeOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if kinds = append(kinds, e.Kind); e.Kind == client.Patch {
				if string(e.Document) != "2" {
					t.Errorf("the document is %s", e.Document)
				}
				break
			}
		}
		if diff := cmp.Diff([]client.EventKind{client.Snapshot, client.Failure, client.Patch}, kinds); diff != "" {
			t.Error(diff)
		}
		for i, most := range []time.Duration{4, 8, 16, 30, 20} {
			if waited := s.at[i+1].Sub(s.at[i]); waited < most*time.Second/2 || waited > most*time.Second {
				t.Errorf("pause %d is %v, want up to %d s", i, waited, most)
			}
		}
	})
}

func TestATopicInErrorEndsTheLoopOnlyIfItEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failure = "event: error\ndata: {\"code\":60000,\"category\":\"TopicException\",\"message\":\"over its quota\"}\n\n"
		c, _ := scripted(t, streams("id: e-1\nevent: snapshot\ndata: 1\n\n"+failure+"id: e-2\nevent: snapshot\ndata: 2\n\nretry: 30000\n"+failure, true))
		var got []string
		var end error
		for e, err := range c.Subscribe(t.Context(), "t", client.SubscribeOptions{}) {
			if end = err; err == nil {
				got = append(got, string(e.Kind)+" "+string(e.Document))
			}
		}
		if diff := cmp.Diff([]string{"snapshot 1", "error 1", "snapshot 2"}, got); diff != "" {
			t.Error(diff)
		}
		if e, ok := errors.AsType[*client.StreamError](end); !ok || e.Code != client.TopicGone {
			t.Errorf("it ended with %v", end)
		}
	})
}

func TestAPatchThatDoesNotFitIsMendedByASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t,
			streams("id: e-1\nevent: snapshot\ndata: {}\n\nid: e-2\nevent: patch\ndata: [{\"op\":\"remove\",\"path\":\"/a\"}]\n\n", true),
			streams("id: e-3\nevent: snapshot\ndata: {\"a\":3}\n\nevent: banana\ndata: 1\n\n", true))
		n := 0
		for e, err := range c.Subscribe(t.Context(), "t", client.SubscribeOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 {
				if !bytes.Equal(e.Document, []byte(`{"a":3}`)) || s.asked[1].Header.Get("Last-Event-ID") != "" {
					t.Errorf("got %s after asking for %q", e.Document, s.asked[1].Header.Get("Last-Event-ID"))
				}
				break
			}
		}
	})
}
