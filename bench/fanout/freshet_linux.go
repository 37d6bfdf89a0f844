package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"
)

// buildFreshet builds the real binary from the repository that this benchmark lies in, unless one was given.
func buildFreshet(b *bench) error {
	if b.freshetBinary != "" {
		return nil
	}
	out := b.files.path("freshet")
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/freshet-io/freshet").Output()
	if err != nil {
		return fmt.Errorf("finding the repository (run this with go -C bench run ./fanout): %w", err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, "./cmd/freshet")
	cmd.Dir = filepath.Clean(string(bytes.TrimSpace(root)))
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building freshet: %w: %s", err, text)
	}
	b.freshetBinary = out
	return nil
}

// startFreshet runs Freshet with its defaults: keys are checked, events have ids, heartbeats and metrics are on. Only addresses and
// the data directory differ.
func startFreshet(ctx context.Context, b *bench, at *place) (*endpoint, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	gateway, subscriber, admin := loopback(ports[0]), loopback(ports[1]), loopback(ports[2])
	p, err := startProcess(b.freshetBinary, "serve", "--data", at.path("data"), "--gateway-listen", gateway.String(),
		"--subscriber-listen", subscriber.String(), "--admin-listen", admin.String())
	if err != nil {
		return nil, err
	}
	e := &endpoint{publish: gateway.String(), subscribe: subscriber, process: p, admin: admin.String()}
	if err := awaitPort(ctx, p, gateway.String()); err != nil {
		return e, err
	}
	return e, e.createTopics(ctx, "http://"+gateway.String(), at)
}

// createTopics makes a user, an app and its topics over the management API.
func (e *endpoint) createTopics(ctx context.Context, gateway string, at *place) error {
	api := manageAPI{base: gateway + "/api/v1"}
	person := map[string]any{"email": "bench@example.com", "password": "correct horse battery", "first_name": "Bench",
		"last_name": "Mark", "language": "en_GB"}
	if _, err := api.call(ctx, http.MethodPost, "/users", person); err != nil {
		return err
	}
	session, err := api.call(ctx, http.MethodPut, "/session", map[string]any{"email": person["email"], "password": person["password"]})
	if err != nil {
		return err
	}
	api.token = session.Token
	app, err := api.call(ctx, http.MethodPost, "/apps", map[string]any{"name": "Bench"})
	if err != nil {
		return err
	}
	before := documentBefore(at.payloadLen)
	e.document = func(payload []byte) []byte { return bytes.Join([][]byte{before, payload, objectEnd}, nil) }
	for i := range at.topics {
		made, err := api.call(ctx, http.MethodPost, "/apps/"+app.ID+"/topics", map[string]any{"name": fmt.Sprintf("Bench %d", i),
			"publisher": map[string]any{"type": "http-post", "config": map[string]any{}}})
		if err != nil {
			return err
		}
		e.topics = append(e.topics, app.topic(made.ID, before))
	}
	return nil
}

// topic is one of an app's, whose documents begin with before.
func (app *managed) topic(id string, before []byte) topic {
	path := "/v1/topics/" + id + "?X-Sd-Subscriber-Key=" + app.SubscriberKey
	head := "POST /publish/v1/topics/" + id + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Sd-Publisher-Key: " +
		app.PublisherKey + "\r\n"
	return topic{
		request:           getRequest(path, ""),
		compress:          getRequest(path+"&X-Sd-Compress=true", "Accept-Encoding: gzip\r\n"),
		appendPublication: func(dst, payload []byte) []byte { return appendPost(dst, head, before, payload, objectEnd) },
	}
}

// documentBefore is what stands before the payload in a document: a member of the same length that never changes. So the payload
// is what changes and what is delivered, and the diff has something to leave out.
func documentBefore(payloadLen int) []byte {
	return fmt.Appendf(nil, `{"fixed":"%s","live":`, filler(payloadLen-2, 1000))
}

// manageAPI is as much of the management API as a benchmark needs.
type manageAPI struct{ base, token string }

type managed struct {
	ID            string `json:"id"`
	Token         string `json:"token"`
	PublisherKey  string `json:"publisher_key"`
	SubscriberKey string `json:"subscriber_key"`
}

func (m *manageAPI) call(ctx context.Context, method, path string, body any) (*managed, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if m.token != "" {
		req.Header.Set("Authorization", "Bearer "+m.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	out := &managed{}
	if len(answer) == 0 {
		return out, nil
	}
	return out, json.Unmarshal(answer, out)
}
