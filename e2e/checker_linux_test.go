package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// load is how much goes on while things break.
type load struct {
	topics      int // with whole documents
	items       int // topics with items
	writers     int // of each topic
	subscribers int // of all topics together
	pause       time.Duration
}

// checked is a topic and everything that is known about it.
type checked struct {
	id    string
	items bool

	mu           sync.Mutex
	publications []*publication
	seen         map[string]string // what subscribers held at a position, as text
	readers      []*follower
}

// publication is one POST and what came of it.
type publication struct {
	writer, n    int
	began, ended time.Time
	position     string // of an acknowledged one
	unknown      bool   // it may have taken effect, or may not
}

// run is load in progress.
type run struct {
	t       *testing.T
	c       *cluster
	key     string
	topics  []*checked
	stop    context.CancelFunc
	reading context.CancelFunc
	writers sync.WaitGroup
	readers sync.WaitGroup
	acked   atomic.Int64
	failed  atomic.Int64
	made    []string // apps whose creation was acknowledged; owned by manage until writers are done
	token   string
	events  atomic.Int64
	resumed atomic.Int64
}

// load begins to publish and to subscribe.
func (c *cluster) load(l load) *run {
	c.t.Helper()
	a := c.signIn(0)
	made := a.createApp("checked")
	r := &run{t: c.t, c: c, key: made.PublisherKey}
	for i := range l.topics + l.items {
		topic := &checked{items: i >= l.topics, seen: map[string]string{}}
		payload := map[string]any{"type": "snapshot"}
		if topic.items {
			payload = map[string]any{"type": "item", "item_id_path": ".writer"}
		}
		var answer named
		a.must(http.StatusCreated, "POST", "/api/v1/apps/"+made.ID+"/topics", map[string]any{
			"name": fmt.Sprint("topic ", i), "publisher": map[string]any{"type": "http-post", "config": map[string]any{}, "payload": payload},
		}, &answer)
		topic.id = answer.ID
		r.topics = append(r.topics, topic)
	}
	writing, stop := context.WithCancel(context.Background())
	reading, reads := context.WithCancel(context.Background())
	r.stop, r.reading = stop, reads
	c.t.Cleanup(func() { stop(); reads(); r.writers.Wait(); r.readers.Wait() })
	for i := range l.subscribers {
		topic := r.topics[i%len(r.topics)]
		f := &follower{run: r, topic: topic, node: i % len(c.streams)}
		topic.readers = append(topic.readers, f)
		r.readers.Go(func() { f.follow(reading) })
	}
	r.token = a.token
	r.writers.Go(func() { r.manage(writing) })
	for _, topic := range r.topics {
		for w := range l.writers {
			r.writers.Go(func() { r.write(writing, topic, w, l.pause) })
		}
	}
	return r
}

// write publishes one document after the other, each to any node.
func (r *run) write(ctx context.Context, topic *checked, writer int, wait time.Duration) {
	// Some give up soon, so that it is not known what became of a publication, and go on elsewhere.
	client := &http.Client{Timeout: []time.Duration{40 * time.Second, 2 * time.Second}[writer%2]}
	defer client.CloseIdleConnections()
	pad := strings.Repeat("x", 100)
	for n := 1; ctx.Err() == nil; n++ {
		body := fmt.Sprintf(`{"writer":%d,"n":%d,"pad":{"a":"%s","b":[%d,%d]}}`, writer, n, pad, n%7, n%3)
		if topic.items {
			body = "[" + body + "]"
		}
		p := &publication{writer: writer, n: n, began: time.Now()}
		status, etag, err := r.post(client, topic.id, body)
		p.ended = time.Now()
		switch {
		case err == nil && status == http.StatusNoContent:
			p.position = strings.Trim(etag, `"`)
			r.acked.Add(1)
		case err == nil && status < 500:
			r.t.Errorf("a publication got %d", status)
			return
		default:
			p.unknown = true
			r.failed.Add(1)
		}
		topic.mu.Lock()
		topic.publications = append(topic.publications, p)
		topic.mu.Unlock()
		time.Sleep(wait + rand.N(30*time.Millisecond))
	}
}

// manage makes one app after the other, each on any node: 2xx means that it stays.
func (r *run) manage(ctx context.Context) {
	client := &http.Client{Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	for n := 1; ctx.Err() == nil; n++ {
		var made named
		status, err := r.call(client, http.MethodPost, "/api/v1/apps", fmt.Sprintf(`{"name":"app %d"}`, n), &made)
		if err == nil && status == http.StatusCreated {
			r.made = append(r.made, made.ID)
		}
		time.Sleep(100*time.Millisecond + rand.N(100*time.Millisecond))
	}
}

// call asks any node's management API.
func (r *run) call(client *http.Client, method, path, body string, out any) (status int, err error) {
	req, err := http.NewRequest(method, "http://"+r.c.gateways[rand.IntN(len(r.c.gateways))]+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < 300 {
		err = json.Unmarshal(text, out)
	}
	return resp.StatusCode, err
}

// checkMade returns how many apps are lost that were acknowledged.
func (r *run) checkMade() (lost int) {
	r.t.Helper()
	for _, id := range r.made {
		var found named
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			status, err := r.call(http.DefaultClient, http.MethodGet, "/api/v1/apps/"+id, "", &found)
			if err == nil && status == http.StatusOK {
				break
			}
			if err == nil && status == http.StatusNotFound || time.Now().After(deadline) {
				r.t.Errorf("app %s was acknowledged and is gone: %d, %v", id, status, err)
				lost++
				break
			}
		}
	}
	return lost
}

func (r *run) post(client *http.Client, topic, body string) (status int, etag string, err error) {
	gateway := r.c.gateways[rand.IntN(len(r.c.gateways))]
	req, err := http.NewRequest(http.MethodPost, "http://"+gateway+"/publish/v1/topics/"+topic, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sd-Publisher-Key", r.key)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode >= 400 && resp.StatusCode < 500 && !strings.HasPrefix(string(text), "{") {
		// Not ours: the HTTP library says 400 by itself when a process was stopped while it read the head of a request.
		return 0, "", fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return resp.StatusCode, resp.Header.Get("ETag"), nil
}

// follower is a client that comes back with the last id it saw, to any node, and applies patches strictly.
type follower struct {
	run   *run
	topic *checked
	node  int

	mu     sync.Mutex
	doc    []byte
	lastID string
}

func (f *follower) follow(ctx context.Context) {
	for ctx.Err() == nil {
		f.connect(ctx)
		f.node = rand.IntN(len(f.run.c.streams))
		f.run.resumed.Add(1)
		time.Sleep(rand.N(300 * time.Millisecond))
	}
}

// silence is how long a follower waits for anything, heartbeats included, before it goes elsewhere.
const silence = 15 * time.Second

func (f *follower) connect(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.run.c.streams[f.node]+"/v1/topics/"+f.topic.id, nil)
	if err != nil {
		return
	}
	f.mu.Lock()
	if f.lastID != "" {
		req.Header.Set("Last-Event-ID", f.lastID)
	}
	f.mu.Unlock()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	var id, event, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		watchdog.Reset(silence)
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			data = value
		case "":
			if event == "error" {
				return
			}
			if event != "" && !f.take(id, event, data) {
				return
			}
			id, event, data = "", "", ""
		}
	}
}

// take applies an event. It reports false if there is no going on.
func (f *follower) take(id, event, data string) bool {
	f.run.events.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if older(id, f.lastID) {
		f.run.t.Errorf("a subscriber of %s got %s after %s", f.topic.id, id, f.lastID)
		return false
	}
	next := []byte(data)
	if event == "patch" {
		patch, err := jsonpatch.DecodePatch([]byte(data))
		if err == nil {
			next, err = patch.Apply(f.doc)
		}
		if err != nil {
			f.run.t.Errorf("a patch to %s does not fit what led to %s: %v\n%s\n%s", id, f.lastID, err, f.doc, data)
			return false
		}
	}
	f.doc, f.lastID = next, id
	f.topic.saw(f.run.t, id, next)
	return true
}

// older reports whether a comes before b, or is b, in the same epoch.
func older(a, b string) bool {
	epochA, versionA := split(a)
	epochB, versionB := split(b)
	return epochA == epochB && versionA <= versionB
}

func split(position string) (epoch string, version uint64) {
	epoch, digits, _ := strings.Cut(position, "-")
	version, _ = strconv.ParseUint(digits, 10, 64)
	return epoch, version
}

// saw notes what the topic was at a position. Everybody must see the same.
func (c *checked) saw(t *testing.T, position string, doc []byte) {
	var canonical any
	if err := json.Unmarshal(doc, &canonical); err != nil {
		t.Errorf("%s at %s is no JSON: %s", c.id, position, doc)
		return
	}
	text, _ := json.Marshal(canonical)
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, known := c.seen[position]; known && before != string(text) {
		t.Errorf("%s at %s is for one subscriber\n%s\nand for another\n%s", c.id, position, before, text)
	}
	c.seen[position] = string(text)
}

// convergence is how long subscribers may take to hold the newest document after everything calmed down. How long they did take
// is in the log.
const convergence = patience

// progress waits until publications are acknowledged again on every topic.
func (r *run) progress() {
	r.t.Helper()
	began := time.Now()
	for _, topic := range r.topics {
		for !topic.ackedSince(began) {
			if time.Since(began) > patience {
				r.t.Fatalf("nothing is published to %s any more", topic.id)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	r.t.Logf("publications go on after %v", time.Since(began).Round(time.Millisecond))
}

// more waits until so many more publications were acknowledged.
func (r *run) more(count int64) {
	r.t.Helper()
	for begin, began := r.acked.Load(), time.Now(); r.acked.Load() < begin+count; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			r.t.Fatal("publishing does not go on")
		}
	}
}

// ackedSince reports whether a publication was acknowledged that began after a time.
func (c *checked) ackedSince(after time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.publications, func(p *publication) bool { return p.position != "" && p.began.After(after) })
}

// finish stops publishing, waits until everybody has everything, and checks it all.
func (r *run) finish() {
	r.t.Helper()
	r.stop()
	r.writers.Wait()
	began := time.Now()
	for _, topic := range r.topics {
		r.converge(topic, began.Add(convergence))
	}
	took := time.Since(began)
	r.reading()
	r.readers.Wait()
	lost := 0
	for _, topic := range r.topics {
		lost += topic.check(r.t)
	}
	lost += r.checkMade()
	r.t.Logf("%d publications and %d management writes were acknowledged, %d got no answer or an error; %d events were received, %d connections resumed; "+
		"converged within %v; lost: %d", r.acked.Load(), len(r.made), r.failed.Load(), r.events.Load(), r.resumed.Load(), took.Round(time.Millisecond), lost)
	if r.acked.Load() < 100 {
		r.t.Error("too little was published to say anything")
	}
}

// converge waits until all subscribers hold the newest version.
func (r *run) converge(topic *checked, deadline time.Time) {
	for {
		ids := map[string]int{}
		for _, f := range topic.readers {
			f.mu.Lock()
			ids[f.lastID]++
			f.mu.Unlock()
		}
		newest := topic.newestAcked()
		only := ""
		for id := range ids {
			only = id
		}
		if len(ids) == 1 && (only == newest || older(newest, only)) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Errorf("subscribers of %s hold %v; the newest acknowledged is %s", topic.id, ids, newest)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *checked) newestAcked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := ""
	for _, p := range c.publications {
		if p.position != "" && (newest == "" || !older(p.position, newest)) {
			newest = p.position
		}
	}
	return newest
}

// check holds what subscribers saw against what publishers were told. It returns how many publications were lost.
func (c *checked) check(t *testing.T) (lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	epochs := map[string]bool{}
	byPosition := map[string]*publication{}
	for _, p := range c.publications {
		if p.position == "" {
			continue
		}
		epoch, _ := split(p.position)
		epochs[epoch] = true
		if other := byPosition[p.position]; other != nil {
			t.Errorf("%s: two publications were told %s", c.id, p.position)
		}
		byPosition[p.position] = p
		if doc, seen := c.seen[p.position]; seen && !c.holds(doc, p) {
			t.Errorf("%s: at %s there is not what writer %d published as %d: %s", c.id, p.position, p.writer, p.n, doc)
			lost++
		}
	}
	if len(epochs) != 1 {
		t.Errorf("%s: history was lost: epochs %v", c.id, epochs)
	}
	c.checkOrder(t)
	if c.items {
		lost += c.checkItems(t)
	} else {
		c.checkUnknown(t)
	}
	return lost
}

type content struct {
	Writer int `json:"writer"`
	N      int `json:"n"`
}

func (c *checked) contents(doc string) (all []content) {
	if !c.items {
		doc = "[" + doc + "]"
	}
	_ = json.Unmarshal([]byte(doc), &all) // it was JSON when it was seen
	return all
}

func (c *checked) holds(doc string, p *publication) bool {
	return slices.Contains(c.contents(doc), content{p.writer, p.n})
}

// checkOrder: what was acknowledged before another publication began stands before it.
func (c *checked) checkOrder(t *testing.T) {
	var acked []*publication
	for _, p := range c.publications {
		if p.position != "" {
			acked = append(acked, p)
		}
	}
	slices.SortFunc(acked, func(a, b *publication) int {
		_, x := split(a.position)
		_, y := split(b.position)
		return int(x) - int(y)
	})
	var latest time.Time // the latest beginning of all that stand before
	for _, p := range acked {
		if p.ended.Before(latest) {
			t.Errorf("%s: %s was acknowledged before something that stands before it had begun", c.id, p.position)
		}
		if p.began.After(latest) {
			latest = p.began
		}
	}
}

// checkUnknown: what got no answer took effect once or never, and never after a later acknowledged one.
func (c *checked) checkUnknown(t *testing.T) {
	unknown := map[content]*publication{}
	var acked []*publication
	for _, p := range c.publications {
		if p.unknown {
			unknown[content{p.writer, p.n}] = p
		} else {
			acked = append(acked, p)
		}
	}
	at := map[content]string{}
	for position, doc := range c.seen {
		for _, v := range c.contents(doc) {
			p := unknown[v]
			if p == nil {
				continue
			}
			if other, twice := at[v]; twice && other != position {
				t.Errorf("%s: a publication without an answer took effect at %s and at %s", c.id, other, position)
			}
			at[v] = position
			for _, later := range acked {
				if later.began.After(p.ended) && older(later.position, position) {
					t.Errorf("%s: a publication without an answer took effect at %s, after %s which began later", c.id, position, later.position)
				}
			}
		}
	}
}

// checkItems: an item only ever goes forward, and in the end nothing acknowledged is missing.
func (c *checked) checkItems(t *testing.T) (lost int) {
	positions := make([]string, 0, len(c.seen))
	for position := range c.seen {
		positions = append(positions, position)
	}
	slices.SortFunc(positions, func(a, b string) int {
		_, x := split(a)
		_, y := split(b)
		return int(x) - int(y)
	})
	held := map[int]int{}
	for _, position := range positions {
		for _, v := range c.contents(c.seen[position]) {
			if v.N < held[v.Writer] {
				t.Errorf("%s: at %s the item of writer %d goes back from %d to %d", c.id, position, v.Writer, held[v.Writer], v.N)
			}
			held[v.Writer] = v.N
		}
	}
	for _, p := range c.publications {
		if p.position != "" && held[p.writer] < p.n {
			lost++
			t.Errorf("%s: what writer %d published as %d at %s is lost; the end has %d", c.id, p.writer, p.n, p.position, held[p.writer])
		}
	}
	return lost
}
