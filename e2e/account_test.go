package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// tenantOf signs somebody up and returns its API, its id, an app and a topic.
func tenantOf(t *testing.T, p *process, email string) (a *api, userID string, made app, topicID string) {
	t.Helper()
	a = &api{t: t, base: "http://" + p.Gateway}
	var user, topic named
	a.must(http.StatusCreated, "POST", "/api/v1/users", map[string]string{
		"email": email, "password": "correct horse battery", "first_name": "Ada", "last_name": "Lovelace", "language": "en_GB"}, &user)
	var session struct{ Token string }
	a.must(http.StatusOK, "PUT", "/api/v1/session", map[string]string{"email": email, "password": "correct horse battery"}, &session)
	a.token = session.Token
	made = a.createApp("Quotes")
	a.must(http.StatusCreated, "POST", "/api/v1/apps/"+made.ID+"/topics", postTopic("Paris"), &topic)
	return a, user.ID, made, topic.ID
}

func postTo(t *testing.T, p *process, topicID, key, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.Gateway+"/publish/v1/topics/"+topicID, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Sd-Publisher-Key", key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// subscribeTo opens a stream and returns its lines with data, until it ends.
func subscribeTo(t *testing.T, p *process, topicID, key string) (io.Closer, <-chan string) {
	t.Helper()
	return linesOf(t, "http://"+p.Subscriber+"/v1/topics/"+topicID+"?X-Sd-Subscriber-Key="+key)
}

// linesOf opens a stream and returns the data of its events.
func linesOf(t *testing.T, url string) (io.Closer, <-chan string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(answer.Body); in.Scan(); {
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				lines <- data
			}
		}
	}()
	return answer.Body, lines
}

func TestADisabledAccountIsShutOutEverywhere(t *testing.T) {
	t.Parallel()
	p := start(t)
	admin := signIn(t, p)
	ada, id, app, topic := tenantOf(t, p, "ada@example.com")
	if status := postTo(t, p, topic, app.PublisherKey, `{"n":1}`); status != http.StatusNoContent {
		t.Fatal(status)
	}
	stream, lines := subscribeTo(t, p, topic, app.SubscriberKey)
	defer stream.Close()
	if got := <-lines; got != `{"n":1}` {
		t.Fatal(got)
	}
	var changed struct{ Status string }
	admin.must(http.StatusOK, "PATCH", "/api/v1/admin/users/"+id, map[string]string{"status": "disabled"}, &changed)
	if got := <-lines; !strings.Contains(got, "40120") { // by itself, and at once
		t.Errorf("the stream got %s", got)
	}
	if got, more := <-lines; more {
		t.Errorf("and then %s", got)
	}
	again, refused := subscribeTo(t, p, topic, app.SubscriberKey)
	defer again.Close()
	if got := <-refused; !strings.Contains(got, "40120") {
		t.Errorf("a new stream got %s", got)
	}
	if status := postTo(t, p, topic, app.PublisherKey, `{"n":2}`); status != http.StatusUnauthorized {
		t.Errorf("publishing answers %d", status)
	}
	ada.must(http.StatusUnauthorized, "GET", "/api/v1/apps", nil, nil)
	ada.must(http.StatusUnauthorized, "PUT", "/api/v1/session", map[string]string{"email": "ada@example.com", "password": "correct horse battery"}, nil)

	admin.must(http.StatusOK, "PATCH", "/api/v1/admin/users/"+id, map[string]string{"status": "active"}, &changed)
	if status := postTo(t, p, topic, app.PublisherKey, `{"n":3}`); status != http.StatusNoContent {
		t.Errorf("once it is enabled again, publishing answers %d", status)
	}
	ada.must(http.StatusOK, "PUT", "/api/v1/session", map[string]string{"email": "ada@example.com", "password": "correct horse battery"}, nil)
}

func TestQuotasOfAnAppHoldUnderConcurrentUse(t *testing.T) {
	t.Parallel()
	p := start(t)
	admin := signIn(t, p)
	_, _, app, topic := tenantOf(t, p, "grace@example.com")
	var set struct{ Quotas struct{ Connections int } }
	admin.must(http.StatusOK, "PATCH", "/api/v1/admin/apps/"+app.ID, map[string]any{"quotas": map[string]any{"connections": 5, "requests_per_minute": 3}}, &set)
	if set.Quotas.Connections != 5 {
		t.Fatalf("%+v", set)
	}
	if status := postTo(t, p, topic, app.PublisherKey, `{"n":1}`); status != http.StatusNoContent {
		t.Fatal(status)
	}
	var mu sync.Mutex
	var crowd sync.WaitGroup
	got := map[string]int{}
	for range 60 {
		crowd.Go(func() {
			stream, lines := subscribeTo(t, p, topic, app.SubscriberKey)
			t.Cleanup(func() { stream.Close() })
			first := <-lines
			if strings.Contains(first, "40121") {
				first = "40121"
			}
			mu.Lock()
			defer mu.Unlock()
			got[first]++
		})
	}
	crowd.Wait()
	if got[`{"n":1}`] != 5 || got["40121"] != 55 {
		t.Errorf("60 came at once: %v", got)
	}
	codes := map[int]int{}
	for range 6 { // in one minute, or in two
		codes[postTo(t, p, topic, app.PublisherKey, fmt.Sprintf(`{"n":%d}`, len(codes)+2))]++
	}
	if codes[http.StatusTooManyRequests] == 0 || codes[http.StatusTooManyRequests]+codes[http.StatusNoContent] != 6 {
		t.Errorf("%v", codes)
	}
}

func TestQuotasOfTopicsAndDocumentsHoldEverywhere(t *testing.T) {
	t.Parallel()
	p := start(t)
	admin := signIn(t, p)
	ada, user, app, topic := tenantOf(t, p, "hedy@example.com")
	ada.must(http.StatusOK, "PATCH", "/api/v1/apps/"+app.ID, map[string]any{"auto_provisioning_allowed": true}, nil)
	set := func(quotas map[string]any) {
		t.Helper()
		admin.must(http.StatusOK, "PATCH", "/api/v1/admin/users/"+user, map[string]any{"quotas": quotas}, nil)
	}
	publish := func(body string, want int) {
		t.Helper()
		if status := postTo(t, p, topic, app.PublisherKey, body); status != want {
			t.Errorf("%s: %d", body, status)
		}
	}
	set(map[string]any{"topics": 2, "document_bytes": 30})
	publish(`{"n": 1}`, http.StatusNoContent)
	publish(`{"n": "twenty characters and more"}`, http.StatusInsufficientStorage)

	// A document that is polled takes the rest, until it grows.
	var longer atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if longer.Load() {
			_, _ = io.WriteString(w, `{"n":"many more characters than before"}`)
			return
		}
		_, _ = io.WriteString(w, `{"of":"the target"}`)
	}))
	defer target.Close()
	follow := func(url string) (io.Closer, <-chan string) {
		t.Helper()
		return linesOf(t, "http://"+p.Subscriber+"/"+url+"?X-Sd-Subscriber-Key="+app.SubscriberKey)
	}
	stream, lines := follow(target.URL + "/")
	defer stream.Close()
	if first := <-lines; first != `{"of":"the target"}` {
		t.Errorf("the stream begins with %s", first)
	}
	longer.Store(true)
	if next := <-lines; !strings.Contains(next, `"code":60000`) || !strings.Contains(next, "quota document_bytes") {
		t.Errorf("over the quota it gets %s", next)
	}

	// Its topic counts as well.
	ada.must(http.StatusForbidden, "POST", "/api/v1/apps/"+app.ID+"/topics", postTopic("third"), nil)
	refused, more := follow(target.URL + "/other")
	defer refused.Close()
	if first := <-more; !strings.Contains(first, `"code":40121`) || !strings.Contains(first, "quota topics is 2") {
		t.Errorf("a URL more gets %s", first)
	}
	set(map[string]any{"topics": 3, "document_bytes": 1000})
	ada.must(http.StatusCreated, "POST", "/api/v1/apps/"+app.ID+"/topics", postTopic("third"), nil)
	publish(`{"n": "twenty characters and more"}`, http.StatusNoContent)
	if next := <-lines; !strings.Contains(next, "many more characters") { // on the same stream
		t.Errorf("with a higher quota it gets %s", next)
	}
}
