package e2e

import (
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// TestRolesInProcessesOfTheirOwn: every role but manage without the right to write to the database, on one NATS server.
func TestRolesInProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 0, loopback(1), noWrap)
	reader := readerURL(t, c.postgres.URL)
	for _, role := range []string{"publish", "subscribe", "poll", "gateway"} {
		c.addNode(role, "--roles", role, "--database", reader).start() // before anybody has made the schema
	}
	const publish, subscribe, gateway, manage = 0, 1, 3, 4
	c.addNode("manage", "--roles", "manage").start()
	for _, m := range c.nodes {
		m.Await("ready")
	}
	run := c.rolesRun(manage)
	run.progressOf(t)
	for path, node := range map[string]int{"/api/v1/apps": publish, "/publish/v1/topics/x": manage} {
		if status, _ := get(t, c.gateways[node], path); status != http.StatusNotFound {
			t.Errorf("a node without the role answers %d to %s", status, path)
		}
	}
	// What subscribers bring about is written by the process that may.
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"from":"`+r.Header.Get("X-Secret")+`"}`)
	}))
	defer up.Close()
	header := url.Values{"X-Sd-Header": {"X-Secret: sesame"}}
	(&anyNode{t: t, c: c}).subscribeAt(subscribe, up.URL+"/data", header).first(`{"from":"sesame"}`)
	run.awaitUsage(t)
	admin := &process{Admin: c.admins[gateway]}
	if status := registerAPI(t, admin, up.URL); status != http.StatusCreated {
		t.Errorf("registering an API at the gateway answers %d", status)
	}
	if status, body := get(t, c.gateways[gateway], "/quote"); status != http.StatusOK || !strings.Contains(body, "from") {
		t.Errorf("a registered API answers %d %s", status, body)
	}
	run.renew()
	if status, err := run.publish(); err != nil || status != http.StatusUnauthorized {
		t.Errorf("the old key gets %d, %v", status, err)
	}
	// Without a process that may write, what cannot be done says so, and the rest goes on.
	c.nodes[manage].Kill()
	(&anyNode{t: t, c: c}).subscribeAt(subscribe, up.URL+"/other", nil).refused(50000)
	if status := registerAPI(t, admin, up.URL); status != http.StatusServiceUnavailable {
		t.Errorf("registering without a process that may write answers %d", status)
	}
	(&anyNode{t: t, c: c}).subscribeAt(subscribe, run.topic.ID, nil).first(`{"n":1}`)
	for i, m := range c.nodes {
		if i != manage && strings.Contains(m.Output(), "permission denied") {
			t.Errorf("%s tried to write:\n%s", m.name, m.Output())
		}
		if strings.Contains(m.Output(), "sesame") {
			t.Errorf("%s shows a secret", m.name)
		}
	}
}

func registerAPI(t *testing.T, p *process, upstream string) int {
	t.Helper()
	return form(t, p, "/apis/", "name", "quote", "request_path", "/quote", "upstream_url", upstream)
}

// awaitUsage waits until what other processes counted is in the report.
func (r *rolesRun) awaitUsage(t *testing.T) {
	t.Helper()
	var report struct {
		Total struct{ Publications, Messages int }
	}
	for deadline := time.Now().Add(patience); report.Total.Publications == 0 || report.Total.Messages == 0; time.Sleep(20 * time.Millisecond) {
		r.api.must(http.StatusOK, "GET", "/api/v1/topics/"+r.topic.ID+"/usage", nil, &report)
		if time.Now().After(deadline) {
			t.Fatalf("usage is %+v", report)
		}
	}
}

// readerURL makes a database user that can only read what is made later.
func readerURL(t *testing.T, where string) string {
	t.Helper()
	db, err := sql.Open("pgx", where)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{"CREATE ROLE reader LOGIN", "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("reader")
	return u.String()
}

// rolesRun is a topic on a cluster whose nodes have one role each.
type rolesRun struct {
	c     *cluster
	api   *api
	app   app
	topic named
}

func (c *cluster) rolesRun(manage int) *rolesRun {
	r := &rolesRun{c: c, api: c.signIn(manage)}
	r.app = r.api.createApp("roles")
	r.api.must(http.StatusCreated, "POST", "/api/v1/apps/"+r.app.ID+"/topics", postTopic("t"), &r.topic)
	return r
}

func (r *rolesRun) publish() (int, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+r.c.gateways[0]+"/publish/v1/topics/"+r.topic.ID, strings.NewReader(`{"n":1}`))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sd-Publisher-Key", r.app.PublisherKey)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// progressOf publishes at one node and sees the document at another.
func (r *rolesRun) progressOf(t *testing.T) {
	t.Helper()
	if status, err := r.publish(); err != nil || status != http.StatusNoContent {
		t.Fatalf("publishing got %d, %v", status, err)
	}
	got := make(chan string, 1)
	f := &http.Client{Timeout: patience}
	resp, err := f.Get("http://" + r.c.streams[1] + "/v1/topics/" + r.topic.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buffer := make([]byte, 4096)
	go func() {
		text := ""
		for !strings.Contains(text, `{"n":1}`) {
			n, err := resp.Body.Read(buffer)
			text += string(buffer[:n])
			if err != nil {
				break
			}
		}
		got <- text
	}()
	if text := <-got; !strings.Contains(text, `{"n":1}`) {
		t.Errorf("a subscriber got %s", text)
	}
}

func (r *rolesRun) renew() {
	r.api.must(http.StatusOK, "PUT", "/api/v1/apps/"+r.app.ID+"/publisher_key", nil, &app{})
}

// carryNATS is a small cluster without servers of its own.
func carryNATS(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := startCluster(t, 0, nil, noWrap)
	var peers []string
	for range nodes {
		peers = append(peers, freeAddress(t, "127.0.0.1"))
	}
	for _, own := range peers {
		c.addNode(own, "--nats", "embedded", "--nats-peers", strings.Join(peers, ","), "--nats-cluster-listen", own, "--nats-secret", "opensesame")
	}
	for _, m := range c.nodes {
		m.start()
	}
	for _, m := range c.nodes {
		m.Await("ready")
	}
	return c
}

// TestTwoNodesCarryNATSInside lets them keep two copies of a document: there is no third place for it.
func TestTwoNodesCarryNATSInside(t *testing.T) {
	t.Parallel()
	c := carryNATS(t, 2)
	run := c.load(load{topics: 2, items: 1, writers: 2, subscribers: 8})
	run.progress()
	c.nodes[1].Kill()
	c.nodes[1].start()
	c.ready(1)
	run.more(200)
	run.finish()
}

func TestThreeNodesCarryNATSInside(t *testing.T) {
	t.Parallel()
	c := carryNATS(t, 3)
	run := c.load(load{topics: 2, items: 1, writers: 2, subscribers: 12})
	run.progress()
	c.nodes[2].Kill()
	run.progress()
	c.nodes[2].start()
	c.ready(2)
	run.more(200)
	run.finish()
	for _, m := range c.nodes {
		if strings.Contains(m.Output(), "opensesame") {
			t.Error("the log shows the secret")
		}
	}
}
