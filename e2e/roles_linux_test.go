package e2e

import (
	"database/sql"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// TestRolesInProcessesOfTheirOwn: publishing and streaming without the right to write to the database, on one NATS server.
func TestRolesInProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 0, loopback(1), noWrap)
	reader := readerURL(t, c.postgres.URL)
	publish := c.addNode("publish", "--roles", "publish", "--database", reader)
	subscribe := c.addNode("subscribe", "--roles", "subscribe", "--database", reader)
	publish.start() // before anybody has made the schema
	subscribe.start()
	manage := c.addNode("manage", "--roles", "manage")
	manage.start()
	for _, m := range c.nodes {
		m.Await("ready")
	}
	run := c.rolesRun(2)
	run.progressOf(t)

	for path, node := range map[string]int{"/api/v1/apps": 0, "/publish/v1/topics/x": 2} {
		if status, _ := get(t, c.gateways[node], path); status != http.StatusNotFound {
			t.Errorf("a node without the role answers %d to %s", status, path)
		}
	}
	// A key that is renewed on one node ends at the others.
	run.renew()
	deadline := time.Now().Add(patience)
	for {
		status, err := run.publish()
		if err == nil && status == http.StatusUnauthorized {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the old key still gets %d, %v", status, err)
		}
		time.Sleep(20 * time.Millisecond)
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

// TestThreeNodesCarryNATSInside is the small cluster without servers of its own.
func TestThreeNodesCarryNATSInside(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 0, nil, noWrap)
	var peers []string
	for range 3 {
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
