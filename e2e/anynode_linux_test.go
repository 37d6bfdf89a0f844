package e2e

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// anyNode is a client that sends every request to another node than chance would have it: whatever one acknowledged must be
// true on all of them.
type anyNode struct {
	t     *testing.T
	c     *cluster
	token string
	known *sessions
}

// sessions are those of users who are needed often: hashing a password takes its time.
type sessions struct{ user, admin string }

func (a *anyNode) node() int { return rand.IntN(len(a.c.nodes)) }

// reply is what a node answered.
type reply struct {
	node   int
	status int
	header http.Header
	body   []byte
}

// send makes a request. The path decides the listener: those of the administration begin with a colon.
func (a *anyNode) send(method, path string, header map[string]string, body any) reply {
	a.t.Helper()
	node := a.node()
	base := "http://" + a.c.gateways[node]
	if strings.HasPrefix(path, ":") {
		base, path = "http://"+a.c.admins[node], path[1:]
	}
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	case url.Values:
		text = []byte(b.Encode())
	default:
		text, _ = json.Marshal(b)
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, base+path, bytes.NewReader(text))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return reply{node, answer.StatusCode, answer.Header, got}
}

// must is send with an expected status, and returns what the body says.
func (a *anyNode) must(status int, method, path string, header map[string]string, body any) (reply, map[string]any) {
	a.t.Helper()
	got := a.send(method, path, header, body)
	if got.status != status {
		a.t.Fatalf("%s %s on node %d: got %d %s, want %d", method, path, got.node, got.status, got.body, status)
	}
	var said map[string]any
	_ = json.Unmarshal(got.body, &said) // some answers have no body, or a list
	return got, said
}

func (a *anyNode) api(status int, method, path string, body any) map[string]any {
	a.t.Helper()
	_, said := a.must(status, method, "/api/v1"+path, nil, body)
	return said
}

func (a *anyNode) publish(status int, topic, key, body string, more ...string) reply {
	a.t.Helper()
	header := map[string]string{"X-Sd-Publisher-Key": key}
	for i := 0; i < len(more); i += 2 {
		header[more[i]] = more[i+1]
	}
	method := "POST"
	if header["Content-Type"] != "" {
		method = "PATCH"
	}
	got, _ := a.must(status, method, "/publish/v1/topics/"+topic, header, body)
	return got
}

func (a *anyNode) admin(status int, method, path string, fields ...string) map[string]any {
	a.t.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	_, said := a.must(status, method, ":"+path, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, values)
	return said
}

// signedIn is a client with an account of its own.
func (a *anyNode) signedIn(name string) (user *anyNode, id string) {
	a.t.Helper()
	account := map[string]any{
		"email": name + "@example.com", "password": "correct horse battery", "first_name": "A", "last_name": "B", "language": "en_GB",
	}
	user = &anyNode{t: a.t, c: a.c}
	id, _ = user.api(201, "POST", "/users", account)["id"].(string)
	user.token, _ = user.api(200, "PUT", "/session", map[string]string{"email": name + "@example.com", "password": "correct horse battery"})["token"].(string)
	return user, id
}

func (a *anyNode) administrator() *anyNode {
	a.t.Helper()
	admin := &anyNode{t: a.t, c: a.c, token: a.known.admin}
	if admin.token == "" {
		admin.token, _ = admin.api(200, "PUT", "/session", map[string]string{"email": "admin@freshet.local", "password": "freshet-admin"})["token"].(string)
		a.known.admin = admin.token
	}
	return admin
}

// somebody is a user whose account stays as it is.
func (a *anyNode) somebody() *anyNode {
	a.t.Helper()
	if a.known.user == "" {
		user, _ := a.signedIn("somebody")
		a.known.user = user.token
	}
	return &anyNode{t: a.t, c: a.c, token: a.known.user}
}

// reader is a stream on some node.
type reader struct {
	t      *testing.T
	node   int
	cancel context.CancelFunc
	events chan readEvent
	doc    []byte
	lastID string
}

type readEvent struct{ id, name, data, retry string }

func (a *anyNode) subscribe(topic string, query url.Values) *reader {
	a.t.Helper()
	return a.subscribeAt(a.node(), topic, query)
}

func (a *anyNode) subscribeAt(node int, topic string, query url.Values) *reader {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	r := &reader{t: a.t, node: node, cancel: cancel, events: make(chan readEvent, 1000)}
	path := "/v1/topics/" + topic
	if strings.Contains(topic, "://") {
		path = "/" + topic
	}
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+a.c.streams[node]+path+"?"+query.Encode(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		a.t.Fatalf("subscribing on node %d: %v", node, err)
	}
	go func() {
		defer close(r.events)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 8<<20)
		var e readEvent
		for lines.Scan() {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "retry":
				e.retry = value
			case "":
				if e != (readEvent{}) {
					r.events <- e
				}
				e = readEvent{}
			}
		}
	}()
	return r
}

// next returns the next event, or the zero event at the end.
func (r *reader) next() readEvent {
	r.t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(patience):
		r.t.Fatalf("a stream on node %d says nothing", r.node)
		return readEvent{}
	}
}

// until applies events until the document is as wanted.
func (r *reader) until(want string) {
	r.t.Helper()
	for len(r.doc) == 0 || !jsonpatch.Equal(r.doc, []byte(want)) {
		e := r.next()
		switch e.name {
		case "snapshot":
			r.doc = []byte(e.data)
		case "patch":
			patch, err := jsonpatch.DecodePatch([]byte(e.data))
			if err == nil {
				r.doc, err = patch.Apply(r.doc)
			}
			if err != nil {
				r.t.Fatalf("patch %s: %v", e.data, err)
			}
		default:
			r.t.Fatalf("waiting for %s, a stream on node %d got %+v", want, r.node, e)
		}
		r.lastID = e.id
	}
}

// first expects the stream to begin with the document, not with an older one.
func (r *reader) first(want string) {
	r.t.Helper()
	if e := r.next(); e.name != "snapshot" || !jsonpatch.Equal([]byte(e.data), []byte(want)) {
		r.t.Fatalf("a stream on node %d begins with %+v, not with %s", r.node, e, want)
	} else {
		r.doc, r.lastID = []byte(e.data), e.id
	}
}

// refused expects an error event with the code.
func (r *reader) refused(code int) {
	r.t.Helper()
	for e := r.next(); ; e = r.next() {
		if e.name == "error" {
			if !strings.Contains(e.data, fmt.Sprintf(`"code":%d`, code)) {
				r.t.Fatalf("a stream on node %d ends with %+v, not with %d", r.node, e, code)
			}
			return
		}
		if e == (readEvent{}) {
			r.t.Fatalf("a stream on node %d ended without an error, not with %d", r.node, code)
		}
	}
}

func (r *reader) close() { r.cancel() }

// TestEveryNodeKnowsWhatAnyNodeAcknowledged runs one cluster through everything that must not depend on which node is asked.
func TestEveryNodeKnowsWhatAnyNodeAcknowledged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	traces := collectTraces(t)
	c := startCluster(t, 2, loopback(1), noWrap, "--telemetry-endpoint", traces.url, "--telemetry-sample-percent", "0")
	known := &sessions{}
	any := func(t *testing.T) *anyNode { return &anyNode{t: t, c: c, known: known} }
	for _, part := range []struct {
		name   string
		rounds int
		run    func(a *anyNode, round string)
	}{
		{"accounts and sessions", 2, (*anyNode).checkAccounts},
		{"publications", 3, (*anyNode).checkPublications},
		{"streams", 3, (*anyNode).checkStreams},
		{"traces", 1, traces.check},
		{"keys", 2, (*anyNode).checkKeys},
		{"deletion", 3, (*anyNode).checkDeletion},
		{"gateway", 4, (*anyNode).checkGateway},
		{"administration", 1, (*anyNode).checkAdministration},
		{"quotas", 1, (*anyNode).checkQuotas},
		{"force_publishing", 4, (*anyNode).checkForce},
		{"lost notices", 1, (*anyNode).checkLostNotices},
		{"poller", 1, (*anyNode).checkPoller},
		{"edition", 1, (*anyNode).checkEdition},
		{"database away", 1, (*anyNode).checkWithoutDatabase},
		{"drain", 1, (*anyNode).checkDrain},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			for round := range part.rounds {
				part.run(any(t), strings.ReplaceAll(part.name, " ", "-")+fmt.Sprint(round))
			}
		})
		if !ok {
			return // what follows stands on it
		}
	}
}

func (a *anyNode) checkAccounts(round string) {
	user, id := a.signedIn(round)
	user.api(200, "GET", "/users/"+id, nil)
	user.api(200, "PATCH", "/users/"+id, map[string]string{"first_name": "C"})
	if got := user.api(200, "GET", "/users/"+id, nil)["first_name"]; got != "C" {
		a.t.Fatalf("after a change the name is %v", got)
	}
	a.api(409, "POST", "/users", map[string]any{
		"email": round + "@example.com", "password": "correct horse battery", "first_name": "A", "last_name": "B", "language": "en_GB",
	})
	app, _ := user.api(201, "POST", "/apps", map[string]string{"name": "one"})["id"].(string)
	user.api(409, "POST", "/apps", map[string]string{"name": "one"})
	user.api(200, "GET", "/apps/"+app, nil)
	if total := user.api(200, "GET", "/apps", nil)["total"]; total != 1.0 {
		a.t.Fatalf("%v apps are listed", total)
	}
	user.api(200, "PATCH", "/users/"+id, map[string]string{"password": "another horse battery", "current_password": "correct horse battery"})
	other := &anyNode{t: a.t, c: a.c}
	other.token, _ = other.api(200, "PUT", "/session", map[string]string{"email": round + "@example.com", "password": "another horse battery"})["token"].(string)
	other.api(204, "DELETE", "/session", nil)
	other.api(401, "GET", "/apps", nil)
	other.api(401, "PUT", "/session", map[string]string{"email": round + "@example.com", "password": "correct horse battery"})
}

// topic makes an app of somebody's and a topic.
func (a *anyNode) topic(round string, config map[string]any) (user *anyNode, app map[string]any, topic string) {
	a.t.Helper()
	user = a.somebody()
	app, topic = a.topicOf(user, round, config)
	return user, app, topic
}

func (a *anyNode) topicOf(user *anyNode, round string, config map[string]any) (app map[string]any, topic string) {
	a.t.Helper()
	app = user.api(201, "POST", "/apps", map[string]any{"name": round})
	topic, _ = user.api(201, "POST", "/apps/"+app["id"].(string)+"/topics", map[string]any{
		"name": "topic", "publisher": map[string]any{"type": "http-post", "config": config},
	})["id"].(string)
	return app, topic
}

func key(app map[string]any, kind string) string { s, _ := app[kind+"_key"].(string); return s }

func (a *anyNode) checkPublications(round string) {
	user, app, topic := a.topic(round, map[string]any{})
	pk := key(app, "publisher")
	user.api(404, "GET", "/topics/"+topic+"/document", nil)
	etag := ""
	for n := range 10 {
		body := fmt.Sprintf(`{"n":%d}`, n)
		etag = a.publish(204, topic, pk, body).header.Get("ETag")
		got, _ := user.must(200, "GET", "/api/v1/topics/"+topic+"/document", nil, nil)
		if string(got.body) != body || got.header.Get("ETag") != etag {
			a.t.Fatalf("node %d has %s at %s after %s was published at %s", got.node, got.body, got.header.Get("ETag"), body, etag)
		}
	}
	user.must(304, "GET", "/api/v1/topics/"+topic+"/document", map[string]string{"If-None-Match": etag}, nil)
	next := a.publish(204, topic, pk, `{"n":10}`, "If-Match", etag).header.Get("ETag")
	a.publish(412, topic, pk, `{"n":11}`, "If-Match", etag)
	a.publish(204, topic, pk, `{"m":1}`, "If-Match", next, "Content-Type", "application/merge-patch+json")
	if got, _ := user.must(200, "GET", "/api/v1/topics/"+topic+"/document", nil, nil); string(got.body) != `{"n":10,"m":1}` {
		a.t.Fatalf("a patch made it %s", got.body)
	}
	first := a.publish(204, topic, pk, `{"once":1}`, "Idempotency-Key", "k").header.Get("ETag")
	a.publish(204, topic, pk, `{"after":1}`)
	for range 4 {
		if again := a.publish(204, topic, pk, `{"once":1}`, "Idempotency-Key", "k").header.Get("ETag"); again != first {
			a.t.Fatalf("the same publication was first %s, then %s", first, again)
		}
	}
	a.publish(409, topic, pk, `{"other":1}`, "Idempotency-Key", "k")
	if got, _ := user.must(200, "GET", "/api/v1/topics/"+topic+"/document", nil, nil); string(got.body) != `{"after":1}` {
		a.t.Fatalf("a repeated publication made it %s", got.body)
	}
}

func (a *anyNode) checkStreams(round string) {
	_, app, topic := a.topic(round, map[string]any{})
	pk, sk := key(app, "publisher"), url.Values{"X-Sd-Subscriber-Key": {key(app, "subscriber")}}
	for n := range 5 {
		body := fmt.Sprintf(`{"n":%d,"list":[1,2,3]}`, n)
		a.publish(204, topic, pk, body)
		s := a.subscribe(topic, sk)
		s.first(body)
		next := fmt.Sprintf(`{"n":%d,"list":[1,2,3,4]}`, n)
		a.publish(204, topic, pk, next)
		s.until(next)
		s.close()
		last := fmt.Sprintf(`{"n":%d,"list":[]}`, n)
		a.publish(204, topic, pk, last)
		resumed := a.subscribe(topic, url.Values{"X-Sd-Subscriber-Key": sk["X-Sd-Subscriber-Key"], "lastEventId": {s.lastID}})
		resumed.doc = s.doc
		if e := resumed.next(); e.name == "patch" {
			resumed.events <- e // it leads to the newest
			resumed.until(last)
		} else {
			a.t.Fatalf("resuming from %s on node %d gets %+v", s.lastID, resumed.node, e)
		}
		resumed.close()
	}
}

func (a *anyNode) checkKeys(round string) {
	user, app, topic := a.topic(round, map[string]any{})
	path := "/apps/" + app["id"].(string)
	for range 3 {
		old := app
		live := a.subscribe(topic, url.Values{"X-Sd-Subscriber-Key": {key(app, "subscriber")}})
		a.publish(204, topic, key(app, "publisher"), `{"a":1}`)
		live.until(`{"a":1}`)
		app = user.api(200, "PUT", path+"/publisher_key", nil)
		a.publish(401, topic, key(old, "publisher"), `{"a":2}`)
		a.publish(204, topic, key(app, "publisher"), `{"a":3}`)
		app = user.api(200, "PUT", path+"/subscriber_key", nil)
		a.subscribe(topic, url.Values{"X-Sd-Subscriber-Key": {key(old, "subscriber")}}).refused(40111)
		s := a.subscribe(topic, url.Values{"X-Sd-Subscriber-Key": {key(app, "subscriber")}})
		s.first(`{"a":3}`)
		s.close()
		live.refused(40111)
	}
}

func (a *anyNode) checkDeletion(round string) {
	user, app, topic := a.topic(round, map[string]any{})
	a.publish(204, topic, key(app, "publisher"), `{"a":1}`)
	live := a.subscribe(topic, nil)
	live.first(`{"a":1}`)
	user.api(204, "DELETE", "/topics/"+topic, nil)
	user.api(404, "GET", "/topics/"+topic, nil)
	a.publish(404, topic, key(app, "publisher"), `{"a":2}`)
	a.subscribe(topic, nil).refused(40401)
	live.refused(60000)
	user.api(204, "DELETE", "/apps/"+app["id"].(string), nil)
	user.api(404, "GET", "/apps/"+app["id"].(string), nil)
}

func (a *anyNode) checkGateway(round string) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "up "+r.URL.Path) }))
	defer up.Close()
	path := "/" + round
	a.admin(201, "POST", "/apis/", "name", round, "request_path", path, "strip_request_path", "true", "upstream_url", up.URL)
	a.must(200, "GET", path+"/x", nil, nil)
	a.admin(201, "POST", "/apis/"+round+"/plugins", "name", "key-auth")
	a.must(401, "GET", path+"/x", nil, nil)
	a.admin(201, "POST", "/consumers/", "username", round)
	a.admin(201, "POST", "/consumers/"+round+"/key-auth", "key", "key-of-"+round)
	a.must(200, "GET", path+"/x", map[string]string{"apikey": "key-of-" + round}, nil)
	// Each node for itself would let pass about twice as many. A few may pass uncounted where counting takes too long.
	a.admin(201, "POST", "/apis/"+round+"/plugins", "name", "rate-limiting", "config.day", "10")
	passed := 0
	for range 20 {
		if a.send("GET", path+"/x", map[string]string{"apikey": "key-of-" + round}, nil).status == http.StatusOK {
			passed++
		}
	}
	if passed < 10 || passed > 15 {
		a.t.Errorf("%d requests passed a limit of 10", passed)
	}
	a.admin(200, "PATCH", "/apis/"+round, "request_path", path+"-moved")
	a.must(404, "GET", path+"/x", nil, nil)
	a.admin(204, "DELETE", "/apis/"+round)
	a.must(404, "GET", path+"-moved/x", nil, nil)
}

func (a *anyNode) checkAdministration(round string) {
	admin := a.administrator()
	user, userID := a.signedIn(round)
	app, topic := a.topicOf(user, round, map[string]any{})
	id := app["id"].(string)
	a.publish(204, topic, key(app, "publisher"), `{"a":1}`)
	count := func(want float64) []any {
		a.t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // streams end when their clients are seen to be gone
			list := admin.api(200, "GET", "/admin/connections?topic="+topic, nil)
			if list["total"] == want {
				return list["items"].([]any)
			}
			if time.Now().After(deadline) {
				a.t.Fatalf("%v connections are listed, not %v", list["total"], want)
			}
		}
	}
	var streams []*reader
	for node := range a.c.nodes {
		s := a.subscribeAt(node, topic, nil)
		s.first(`{"a":1}`)
		streams = append(streams, s)
	}
	for range 4 {
		list := admin.api(200, "GET", "/admin/connections?topic="+topic, nil)
		if list["total"] != 2.0 || len(list["items"].([]any)) != 2 {
			a.t.Fatalf("connections on two nodes: %v", list)
		}
		for page := range 2 {
			part := admin.api(200, "GET", fmt.Sprintf("/admin/connections?topic=%s&per_page=1&page=%d", topic, page), nil)
			if len(part["items"].([]any)) != 1 {
				a.t.Fatalf("page %d of connections: %v", page, part)
			}
		}
	}
	first := count(2)[0].(map[string]any)["id"].(string)
	if why := admin.api(200, "GET", "/admin/connections/"+first+"/explain", nil); why["subscribers"] != 2.0 {
		a.t.Errorf("the topic has two subscribers, on two nodes: %v", why)
	}
	admin.api(204, "DELETE", "/admin/connections/"+first, nil)
	count(1)
	for range 2 {
		usage := user.api(200, "GET", "/topics/"+topic+"/usage", nil)["total"].(map[string]any)
		if usage["publications"] != 1.0 || usage["messages"].(float64) < 2 {
			a.t.Fatalf("usage is %v", usage)
		}
		user.api(200, "GET", "/apps/"+id+"/usage", nil)
	}
	admin.api(200, "PATCH", "/admin/users/"+userID, map[string]string{"status": "disabled"})
	a.publish(401, topic, key(app, "publisher"), `{"a":2}`)
	user.api(401, "GET", "/apps", nil)
	a.subscribe(topic, nil).refused(40120)
	count(0)
	admin.api(200, "PATCH", "/admin/users/"+userID, map[string]string{"status": "active"})
	a.publish(204, topic, key(app, "publisher"), `{"a":3}`)
	for _, s := range streams {
		s.close()
	}
}

func (a *anyNode) checkQuotas(round string) {
	admin := a.administrator()
	user, id := a.signedIn(round)
	app := user.api(201, "POST", "/apps", map[string]any{"name": "app"})
	topic, _ := user.api(201, "POST", "/apps/"+app["id"].(string)+"/topics", postTopic("t"))["id"].(string)
	a.publish(204, topic, key(app, "publisher"), `{"n":0}`)
	admin.api(200, "PATCH", "/admin/users/"+id, map[string]any{"quotas": map[string]int{"connections": 3}})
	var streams []*reader
	for range 3 {
		s := a.subscribe(topic, nil)
		s.first(`{"n":0}`)
		streams = append(streams, s)
	}
	for range 4 {
		a.subscribe(topic, nil).refused(40121)
	}
	// Messages: each node alone stays below the limit.
	admin.api(200, "PATCH", "/admin/users/"+id, map[string]any{"quotas": map[string]int{"connections": 0, "messages_per_month": 40}})
	for node := range a.c.nodes {
		streams = append(streams, a.subscribeAt(node, topic, nil))
	}
	for n := 1; n < 10; n++ {
		a.publish(204, topic, key(app, "publisher"), fmt.Sprintf(`{"n":%d}`, n))
	}
	for _, s := range streams {
		s.refused(40122)
	}
	for range 4 {
		a.subscribe(topic, nil).refused(40122)
	}
	// Topics and documents.
	admin.api(200, "PATCH", "/admin/users/"+id, map[string]any{"quotas": map[string]int{"topics": 1, "document_bytes": 30}})
	for range 4 {
		user.api(403, "POST", "/apps/"+app["id"].(string)+"/topics", postTopic("t"))
		a.publish(507, topic, key(app, "publisher"), `{"n":"much longer than the documents before"}`)
	}
	a.publish(204, topic, key(app, "publisher"), `{"n":10}`)
	// Requests of a user.
	admin.api(200, "PATCH", "/admin/users/"+id, map[string]any{"quotas": map[string]int{"requests_per_minute": 10}})
	passed, minute := 0, time.Now().Minute()
	for range 20 {
		if user.send("GET", "/api/v1/apps", nil, nil).status == http.StatusOK {
			passed++
		}
	}
	if passed > 15 && time.Now().Minute() == minute { // see checkGateway; the next minute has a limit of its own
		a.t.Errorf("%d requests passed a limit of 10", passed)
	}
}

func (a *anyNode) checkForce(round string) {
	user := a.somebody()
	var app map[string]any
	var topic string
	tries := 0
	eventually(a.t, "a publication is dropped", func() bool { // once it is certain that nobody is subscribed
		tries++
		app, topic = a.topicOf(user, fmt.Sprint(round, "-", tries), map[string]any{"force_publishing": false})
		a.publish(204, topic, key(app, "publisher"), `{"dropped":1}`)
		return user.send("GET", "/api/v1/topics/"+topic+"/document", nil, nil).status == http.StatusNotFound
	})
	s := a.subscribe(topic, nil)
	a.publish(204, topic, key(app, "publisher"), `{"kept":1}`)
	s.until(`{"kept":1}`)
	s.close()
}

// checkLostNotices: a change that nobody tells of is found in the database.
func (a *anyNode) checkLostNotices(round string) {
	user, _ := a.signedIn(round)
	app, topic := a.topicOf(user, round, map[string]any{})
	a.publish(204, topic, key(app, "publisher"), `{"a":1}`)
	var streams []*reader
	for node := range a.c.nodes {
		s := a.subscribeAt(node, topic, nil)
		s.first(`{"a":1}`)
		streams = append(streams, s)
	}
	db, err := sql.Open("pgx", a.c.postgres.URL)
	if err != nil {
		a.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(a.t.Context(), "UPDATE users SET status = 'disabled' WHERE email LIKE $1", round+"@%"); err != nil {
		a.t.Fatal(err)
	}
	began := time.Now()
	for _, s := range streams {
		s.refused(40120)
	}
	a.t.Logf("streams end %v after a change that nobody told of", time.Since(began).Round(time.Millisecond))
	for range 4 {
		a.publish(401, topic, key(app, "publisher"), `{"a":2}`)
	}
}

// checkPoller: whichever node polls, it is one; and if it dies, the other one does.
func (a *anyNode) checkPoller(round string) {
	var polls atomic.Int64
	var mu sync.Mutex
	underWay, most := 0, 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		underWay++
		most = max(most, underWay)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"n":%d}`, polls.Add(1))
		mu.Lock()
		underWay--
		mu.Unlock()
	}))
	defer up.Close()
	more := func(s *reader) {
		a.t.Helper()
		for begin := polls.Load(); ; {
			e := s.next()
			if e.name != "snapshot" && e.name != "patch" {
				a.t.Fatalf("a polled stream got %+v", e)
			}
			if polls.Load() >= begin+2 {
				return
			}
		}
	}
	user := a.somebody()
	app := user.api(201, "POST", "/apps", map[string]any{"name": round})
	topic, _ := user.api(201, "POST", "/apps/"+app["id"].(string)+"/topics", map[string]any{
		"name": "polled", "publisher": map[string]any{"type": "http-poller", "config": map[string]any{"url": up.URL, "polling_frequency": 100}},
	})["id"].(string)
	streams := []*reader{a.subscribeAt(0, topic, nil), a.subscribeAt(1, topic, nil)}
	for _, s := range streams {
		more(s)
	}
	for node, other := range []int{1, 0} { // one of them is the one that polls
		a.c.nodes[node].Kill()
		began := time.Now()
		more(streams[other])
		a.t.Logf("polling goes on %v after a kill", time.Since(began).Round(time.Millisecond))
		a.c.nodes[node].start()
		a.c.ready(node)
		streams[node] = a.subscribeAt(node, topic, nil)
		more(streams[node])
	}
	for _, s := range streams {
		s.close()
	}
	if most > 1 {
		a.t.Errorf("%d polls of one topic were under way at the same time", most)
	}
}

// checkEdition: the limit of the beta edition is that of the service, not of each node.
func (a *anyNode) checkEdition(round string) {
	_, app, topic := a.topic(round, map[string]any{})
	a.publish(204, topic, key(app, "publisher"), `{"a":1}`)
	limited := &anyNode{t: a.t, c: &cluster{t: a.t, urls: a.c.urls, postgres: a.c.postgres}}
	for range 2 {
		limited.c.addNode("container", "--roles", "subscribe", "--distribution", "container").start()
	}
	for _, m := range limited.c.nodes {
		m.Await("ready")
	}
	for i := range 10 {
		s := limited.subscribeAt(i%2, topic, nil)
		s.first(`{"a":1}`)
		defer s.close()
	}
	for node := range limited.c.nodes {
		limited.subscribeAt(node, topic, nil).refused(40121)
	}
	for _, m := range limited.c.nodes {
		m.Kill()
	}
}

func (a *anyNode) checkWithoutDatabase(round string) {
	user, app, topic := a.topic(round, map[string]any{})
	pk := key(app, "publisher")
	for range 6 { // so that all nodes know the topic
		a.publish(204, topic, pk, `{"n":0}`)
		s := a.subscribe(topic, nil)
		s.first(`{"n":0}`)
		s.close()
	}
	var streams []*reader
	for node := range a.c.nodes {
		s := a.subscribeAt(node, topic, nil)
		s.first(`{"n":0}`)
		a.publishAt(node, topic, pk, `{"n":0}`)
		streams = append(streams, s)
	}
	a.c.postgres.Kill()
	for n := 1; n <= 10; n++ {
		body := fmt.Sprintf(`{"n":%d}`, n)
		a.publish(204, topic, pk, body)
		for _, s := range streams {
			s.until(body)
		}
	}
	for node := range a.c.nodes {
		s := a.subscribeAt(node, topic, nil)
		s.first(`{"n":10}`)
		s.close()
	}
	user.api(503, "GET", "/apps", nil)
	a.c.postgres.Start()
	for node := range a.c.nodes {
		one := user.at(node)
		for deadline := time.Now().Add(patience); one.send("GET", "/api/v1/apps", nil, nil).status != http.StatusOK; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				a.t.Fatalf("node %d does not find the database again", node)
			}
		}
	}
	for _, s := range streams {
		s.close()
	}
}

func (a *anyNode) publishAt(node int, topic, pk, body string) {
	a.t.Helper()
	a.at(node).publish(204, topic, pk, body)
}

// at is the same client, of one node only.
func (a *anyNode) at(node int) *anyNode {
	return &anyNode{t: a.t, token: a.token, c: &cluster{t: a.t, nodes: a.c.nodes[node : node+1], gateways: a.c.gateways[node : node+1]}}
}

// checkDrain: a node that is told to stop sends everybody elsewhere, each with an advice of its own when to come back.
func (a *anyNode) checkDrain(round string) {
	_, app, topic := a.topic(round, map[string]any{})
	a.publish(204, topic, key(app, "publisher"), `{"a":1}`)
	var streams []*reader
	for range 20 {
		s := a.subscribeAt(0, topic, nil)
		s.first(`{"a":1}`)
		streams = append(streams, s)
	}
	a.c.nodes[0].Signal(syscall.SIGTERM)
	retries := map[string]bool{}
	for _, s := range streams {
		for e := s.next(); e != (readEvent{}); e = s.next() {
			if e.retry != "" {
				retries[e.retry] = true
			}
		}
		moved := a.subscribeAt(1, topic, url.Values{"lastEventId": {s.lastID}})
		moved.close()
	}
	if len(retries) < 5 {
		a.t.Errorf("twenty streams were told to come back after %v", retries)
	}
	if code := a.c.nodes[0].Wait(); code != 0 {
		a.t.Errorf("exit code %d", code)
	}
	a.c.nodes[0].start()
	a.c.ready(0)
}
