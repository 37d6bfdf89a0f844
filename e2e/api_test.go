package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// api is a client of a server's management API, signed in as somebody.
type api struct {
	t     *testing.T
	base  string
	token string
}

// signIn signs in as the admin that the first start creates.
func signIn(t *testing.T, p *process) *api {
	t.Helper()
	a := &api{t: t, base: "http://" + p.Gateway}
	var session struct{ Token string }
	a.must(http.StatusOK, "PUT", "/api/v1/session", map[string]string{"email": "admin@freshet.local", "password": "freshet-admin"}, &session)
	a.token = session.Token
	return a
}

// call returns an error when the server cannot be reached, for tests that kill it.
func (a *api) call(method, path string, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if out != nil && len(text) > 0 {
		if err := json.Unmarshal(text, out); err != nil {
			return 0, fmt.Errorf("%s: %w", text, err)
		}
	}
	return answer.StatusCode, nil
}

func (a *api) must(status int, method, path string, in, out any) {
	a.t.Helper()
	got, err := a.call(method, path, in, out)
	if err != nil || got != status {
		a.t.Fatalf("%s %s: got %d %v, want %d", method, path, got, err, status)
	}
}

// named is what every resource has.
type named struct{ ID, Name string }

type app struct {
	named
	PublisherKey  string `json:"publisher_key"`
	SubscriberKey string `json:"subscriber_key"`
}

func (a *api) createApp(name string) app {
	a.t.Helper()
	var made app
	a.must(http.StatusCreated, "POST", "/api/v1/apps", map[string]string{"name": name}, &made)
	return made
}

// postTopic is the body that creates a topic fed by POSTs.
func postTopic(name string) any {
	return map[string]any{"name": name, "publisher": map[string]any{"type": "http-post", "config": map[string]any{}}}
}
