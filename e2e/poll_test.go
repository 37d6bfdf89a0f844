package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sseEvent is one event of a stream, as far as these tests look.
type sseEvent struct{ id, name, data, retry string }

// subscription is an open stream.
type subscription struct {
	t      *testing.T
	cancel context.CancelFunc
	lines  *bufio.Scanner
}

// subscribe asks the subscriber listener for a raw target, the way curl does.
func (p *process) subscribe(target string, headers ...string) *subscription {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.Subscriber, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.URL.Opaque = target
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("subscribing to %s answered %d", target, answer.StatusCode)
	}
	return &subscription{t: p.t, cancel: cancel, lines: bufio.NewScanner(answer.Body)}
}

// next returns the next event, and false at the end of the stream.
func (s *subscription) next() (e sseEvent, more bool) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "":
			if e != (sseEvent{}) {
				return e, true
			}
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "retry":
			e.retry = value
		}
	}
	return e, false
}

func (s *subscription) expect(name, data string) sseEvent {
	s.t.Helper()
	e, more := s.next()
	if !more || e.name != name || !strings.Contains(e.data, data) {
		s.t.Fatalf("got %+v (%t), want %s with %s", e, more, name, data)
	}
	return e
}

// expectLast wants an error that ends the stream.
func (s *subscription) expectLast(code int) {
	s.t.Helper()
	if e := s.expect("error", fmt.Sprintf(`"code":%d,`, code)); e.retry != "30000" {
		s.t.Errorf("retry is %q", e.retry)
	}
	if e, more := s.next(); more {
		s.t.Errorf("after the end: %+v", e)
	}
}

// api of somebody else's that says who asks and how often.
type otherAPI struct {
	*httptest.Server
	polls atomic.Int64
	mu    sync.Mutex
	uris  []string
}

func newOtherAPI(t *testing.T) *otherAPI {
	o := &otherAPI{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := o.polls.Add(1)
		o.mu.Lock()
		o.uris = append(o.uris, r.RequestURI)
		o.mu.Unlock()
		if r.URL.Path == "/fixed" {
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			n = 0
		}
		fmt.Fprintf(w, `{"who":%q,"path":%q,"n":%d}`, r.Header.Get("Authorization"), r.URL.Path, n)
	}))
	t.Cleanup(o.Close)
	return o
}

func TestAnyURLIsAStreamWithoutAKey(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, "--data", data)
	other := newOtherAPI(t)
	s := p.subscribe("/" + other.URL + "/fixed?api_key=canary-query&X-Sd-Compress=false")
	first := s.expect("snapshot", `{"who":"","path":"/fixed","n":0}`)
	secret := p.subscribe("/"+other.URL+"/live", "Authorization", "Bearer canary-header")
	secret.expect("snapshot", "canary-header")
	secret.expect("patch", "/n")
	open := p.subscribe("/"+strings.Replace(other.URL, "//", "/", 1)+"/live", "Authorization", "Bearer another")
	open.expect("snapshot", `"who":"Bearer another"`)

	a := signIn(t, p)
	var apps struct{ Items []named }
	a.must(http.StatusOK, "GET", "/api/v1/apps", nil, &apps)
	var topics struct {
		Items []map[string]any
		Total int
	}
	a.must(http.StatusOK, "GET", "/api/v1/apps/"+apps.Items[0].ID+"/topics", nil, &topics)
	text, _ := json.Marshal(topics)
	if topics.Total != 3 || topics.Items[0]["auto_provisioned"] != true || bytes.Contains(text, []byte("canary")) {
		t.Errorf("its owner sees %s", text)
	}
	if found := filesWith(t, data, "canary"); found != nil {
		t.Errorf("credentials are in clear in %v", found)
	}

	s.cancel()
	back := p.subscribe("/"+other.URL+"/fixed?api_key=canary-query", "Last-Event-ID", first.id)
	secret.cancel()
	open.cancel()
	eventually(t, "topics go with their subscribers", func() bool {
		a.must(http.StatusOK, "GET", "/api/v1/apps/"+apps.Items[0].ID+"/topics", nil, &topics)
		return topics.Total == 1
	})
	// It found the same topic and had nothing to catch up with: the first thing it hears is that the topic goes.
	a.must(http.StatusNoContent, "DELETE", "/api/v1/topics/"+topics.Items[0]["id"].(string), nil, nil)
	back.expectLast(60000)
	if strings.Contains(p.Output(), "canary") {
		t.Error("credentials are in the log")
	}
}

// filesWith lists the files below dir that hold the text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			content, _ := os.ReadFile(path) // files of a running database come and go
			if bytes.Contains(content, []byte(text)) {
				found = append(found, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func pollerTopic(config map[string]any) any {
	return map[string]any{"name": "polled", "publisher": map[string]any{"type": "http-poller", "config": config}}
}

func TestAPollerTopicFollowsItsSettings(t *testing.T) {
	t.Parallel()
	p := start(t)
	a := signIn(t, p)
	other := newOtherAPI(t)
	app := a.createApp("polls")
	var topic struct {
		named
		Publisher struct{ Config map[string]any }
	}
	hour := int64(time.Hour / time.Millisecond)
	a.must(http.StatusCreated, "POST", "/api/v1/apps/"+app.ID+"/topics", pollerTopic(map[string]any{
		"url": other.URL + "/one", "polling_frequency": hour, "headers": map[string]any{"authorization": "Bearer canary"},
	}), &topic)
	if h := topic.Publisher.Config["headers"].(map[string]any); h["Authorization"] != "[hidden]" {
		t.Errorf("shown: %v", h)
	}
	path := "/api/v1/topics/" + topic.ID
	s := p.subscribe("/v1/topics/" + topic.ID)
	s.expect("snapshot", `{"who":"Bearer canary","path":"/one","n":1}`)
	a.must(http.StatusAccepted, "POST", path+"/refresh", nil, nil)
	s.expect("patch", `"value":2`)
	change := func(config map[string]any) {
		t.Helper()
		a.must(http.StatusOK, "PATCH", path, map[string]any{"publisher": map[string]any{"config": config}}, nil)
	}
	change(map[string]any{"url": other.URL + "/two"})
	s.expect("patch", `/two`)
	change(map[string]any{"polling_frequency": 100, "headers": map[string]any{"Authorization": "[hidden]", "X-More": "1"}})
	for range 5 {
		s.expect("patch", `/n`)
	}
	change(map[string]any{"headers": nil})
	for changed := false; !changed; { // polls under way may still show the old header
		e, more := s.next()
		if !more || e.name != "patch" {
			t.Fatalf("got %+v (%v) before the header was gone", e, more)
		}
		changed = strings.Contains(e.data, `{"op":"replace","path":"/who","value":""}`)
	}
	a.must(http.StatusBadRequest, "PATCH", path, map[string]any{"publisher": map[string]any{"config": map[string]any{"polling_frequency": 99}}}, nil)
	a.must(http.StatusNoContent, "DELETE", path, nil, nil)
	for e, more := s.next(); more; e, more = s.next() {
		if e.name == "error" && !strings.Contains(e.data, `"code":60000,`) {
			t.Errorf("it ended with %+v", e)
		}
	}
	after := other.polls.Load()
	time.Sleep(500 * time.Millisecond) // five intervals
	if n := other.polls.Load(); n > after+1 {
		t.Errorf("a deleted topic was polled %d times", n-after)
	}
	a.must(http.StatusNotFound, "POST", path+"/refresh", nil, nil)
}

func TestAFailingSourceIsTold(t *testing.T) {
	t.Parallel()
	p := start(t)
	a := signIn(t, p)
	var status atomic.Int64
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if code := status.Load(); code != 0 {
			w.WriteHeader(int(code))
		}
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(source.Close)
	app := a.createApp("fails")
	var topic named
	a.must(http.StatusCreated, "POST", "/api/v1/apps/"+app.ID+"/topics", pollerTopic(map[string]any{"url": source.URL, "polling_frequency": 100}), &topic)
	s := p.subscribe("/v1/topics/" + topic.ID)
	s.expect("snapshot", "ok")
	status.Store(500)
	s.expect("error", `"code":60001,`)
	late := p.subscribe("/v1/topics/" + topic.ID)
	late.expect("snapshot", "ok")
	late.expect("error", `"code":60001,`)
	status.Store(403)
	p.subscribe("/" + source.URL).expectLast(60102)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	p.subscribe("/http://" + closed.Addr().String()).expectLast(60100)
	p.subscribe("/ftp://x/").expectLast(40000)
	p.subscribe("/http://user:pass@x/").expectLast(40000)
}

func TestProductionReachesPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	p := start(t, "--environment", "production", "--admin-password", "another-password")
	a := &api{t: t, base: "http://" + p.Gateway}
	var session struct{ Token string }
	a.must(http.StatusOK, "PUT", "/api/v1/session", map[string]string{"email": "admin@freshet.local", "password": "another-password"}, &session)
	a.token = session.Token
	var made struct {
		named
		Key string `json:"subscriber_key"`
	}
	a.must(http.StatusCreated, "POST", "/api/v1/apps", map[string]any{"name": "open", "auto_provisioning_allowed": true}, &made)
	other := newOtherAPI(t)
	key := func(k string) []string { return []string{"X-Sd-Subscriber-Key", k} }
	p.subscribe("/" + other.URL).expectLast(40100)
	for _, target := range []string{other.URL, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), "http://169.254.169.254/latest/meta-data", "http://[::1]:80/"} {
		p.subscribe("/"+target, key(made.Key)...).expectLast(60100)
	}
	var shut struct {
		Key string `json:"subscriber_key"`
	}
	a.must(http.StatusCreated, "POST", "/api/v1/apps", map[string]any{"name": "shut"}, &shut)
	p.subscribe("/"+other.URL, key(shut.Key)...).expectLast(40100)
	var listed struct {
		Key string `json:"subscriber_key"`
	}
	a.must(http.StatusCreated, "POST", "/api/v1/apps", map[string]any{
		"name": "listed", "auto_provisioning_allowed": true, "allowed_target_hosts": []string{"*.example.com"},
	}, &listed)
	p.subscribe("/"+other.URL, key(listed.Key)...).expectLast(60100)
	if n := other.polls.Load(); n != 0 {
		t.Errorf("an internal address was polled %d times", n)
	}
}
