package router_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// TestDelivery runs the scripts in testdata. A script is a sequence of lines:
//
//	topic snapshot | topic item .path     the topic, with a TTL of one hour
//	subscribe NAME [OPTION...]            snapshots, data, compressed, filter=a,b, from=ID
//	post JSON | patch JSON | merge JSON   publish; append "! KIND" to expect a refusal
//	leave NAME                            the subscriber goes; its last id is kept for from=NAME
//	advance DURATION
//	delete                                drops the document
//	expect NAME EVENT ID JSON             the next event
//	expect NAME nothing
//
// Epochs are written e1, e2 … in order of appearance. On a cluster every subscriber is there once on each node, publications go
// to the first one, and an hour is a few seconds if the script lets time pass.
func TestDelivery(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.script")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, path := range scripts {
		name := strings.TrimSuffix(filepath.Base(path), ".script")
		for engine, wrap := range map[string]func(*memory.Grid) grid.Grid{
			"memory": func(m *memory.Grid) grid.Grid { return m },
			"remote": func(m *memory.Grid) grid.Grid { return remoteGrid{m} },
		} {
			t.Run(name+"/"+engine, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := memory.New(memory.Options{MessageTTL: time.Hour})
					defer m.Close()
					runScript(t, path, time.Hour, wrap(m))
				})
			})
		}
		t.Run(name+"/cluster", func(t *testing.T) {
			t.Parallel()
			hour := time.Hour
			if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("\nadvance ")) {
				hour = clusterHour
			}
			runScript(t, path, hour, cluster(t, 2, hour)...)
		})
	}
}

// remoteGrid is a grid whose documents go over a wire: only bytes arrive, and no hints.
type remoteGrid struct{ *memory.Grid }

func (g remoteGrid) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	doc.Content = grid.Raw(bytes.Clone(doc.Content.Bytes()))
	doc.Patch, doc.PatchFrom = nil, freshet.Position{}
	return g.Grid.Put(ctx, topic, expected, doc)
}

type script struct {
	t      *testing.T
	where  string
	hour   time.Duration
	grids  []grid.Grid
	nodes  []*router.Router
	topic  freshet.Topic
	subs   map[string][]*subscriber // one for each node
	epochs map[string]string
	lastID map[string]string
}

// patience is how long anything may take before it is taken for a failure.
const patience = time.Minute

type subscriber struct {
	feed       *router.Feed
	compressed bool
	mark       string
	cursor     fanout.Cursor
	pending    []string
}

// runScript runs a script on nodes that share a grid, each through its own.
func runScript(t *testing.T, path string, hour time.Duration, grids ...grid.Grid) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := &script{t: t, hour: hour, grids: grids, subs: map[string][]*subscriber{}, epochs: map[string]string{}, lastID: map[string]string{}}
	for _, g := range grids {
		node := router.New(g, router.Options{MessageTTL: hour})
		defer node.Close()
		s.nodes = append(s.nodes, node)
	}
	defer func() {
		for _, each := range s.subs {
			for _, sub := range each {
				sub.feed.Close()
			}
		}
	}()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		s.where = fmt.Sprintf("%s:%d: %s", path, n, line)
		verb, rest, _ := strings.Cut(line, " ")
		s.do(verb, rest)
	}
}

// settle waits until every node knows what the grid knows.
func (s *script) settle() {
	if len(s.grids) == 1 {
		synctest.Wait()
		return
	}
	want, err := s.grids[0].Document(s.t.Context(), s.topic.ID)
	if err != nil {
		s.t.Fatalf("%s: %v", s.where, err)
	}
	for _, node := range s.nodes {
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			_, at, err := node.Document(s.t.Context(), s.topic)
			if err != nil || time.Now().After(deadline) {
				s.t.Fatalf("%s: a node is at %v, not at %v: %v", s.where, at, want.Position, err)
			}
			if at == want.Position {
				break
			}
		}
	}
}

func (s *script) do(verb, rest string) {
	switch verb {
	case "topic":
		s.topic = newTopic(s.t, rest)
	case "subscribe":
		s.subscribe(strings.Fields(rest))
	case "post":
		s.publish(router.Whole, rest)
	case "patch":
		s.publish(router.JSONPatch, rest)
	case "merge":
		s.publish(router.MergePatch, rest)
	case "leave":
		for _, sub := range s.subs[rest] {
			sub.feed.Close()
		}
		delete(s.subs, rest)
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatalf("%s: %v", s.where, err)
		}
		time.Sleep(time.Duration(float64(d) * s.hour.Hours()))
		s.settle()
	case "delete":
		s.grids[0].Delete(s.t.Context(), s.topic.ID)
		s.settle()
	case "expect":
		name, want, _ := strings.Cut(rest, " ")
		s.expect(name, want)
	default:
		s.t.Fatalf("%s: unknown verb", s.where)
	}
}

func newTopic(t *testing.T, payload string) freshet.Topic {
	topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	if path, ok := strings.CutPrefix(payload, "item "); ok {
		p, err := freshet.ParseItemPath(path)
		if err != nil {
			t.Fatal(err)
		}
		topic.Publisher.Payload = freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: p}
	}
	return topic
}

func (s *script) subscribe(args []string) {
	v := router.Variant{Event: "snapshot"}
	from := ""
	for _, option := range args[1:] {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "snapshots":
			v.Mode = router.Snapshots
		case "data":
			v.Event = "data"
		case "compressed":
			v.Compressed = true
		case "filter":
			v.Filter = router.ParseFilter(value)
		case "from":
			from = value
			if id, ok := s.lastID[value]; ok {
				from = id
			}
		default:
			s.t.Fatalf("%s: unknown option %s", s.where, option)
		}
	}
	for _, node := range s.nodes {
		feed, err := node.Subscribe(s.t.Context(), &s.topic, v)
		if err != nil {
			s.t.Fatalf("%s: %v", s.where, err)
		}
		sub := &subscriber{feed: feed, compressed: v.Compressed, mark: v.Filter.Mark()}
		s.subs[args[0]] = append(s.subs[args[0]], sub)
		sub.take(s, args[0], feed.Begin(from))
	}
}

func (s *script) publish(form router.Form, rest string) {
	body, wantKind, refused := strings.Cut(rest, " ! ")
	_, err := s.nodes[0].Publish(s.t.Context(), &s.topic, router.Publication{Body: []byte(body), Form: form})
	if refused && err != nil && fmt.Sprint(int(freshet.KindOf(err))) == fmt.Sprint(int(kinds[wantKind])) {
		return
	}
	if err != nil || refused {
		s.t.Fatalf("%s: got %v", s.where, err)
	}
	s.settle()
}

var kinds = map[string]freshet.Kind{
	"Invalid": freshet.Invalid, "Conflict": freshet.Conflict, "MethodNotAllowed": freshet.MethodNotAllowed, "TooLarge": freshet.TooLarge,
}

func (s *script) expect(name, want string) {
	for node, sub := range s.subs[name] {
		if len(sub.pending) == 0 {
			sub.take(s, name, sub.feed.Since(sub.cursor))
		}
		// What time brings about comes when the clocks of a cluster say so; in a bubble everything has happened.
		for deadline := time.Now().Add(patience); len(s.grids) > 1 && want != "nothing" && len(sub.pending) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
			sub.take(s, name, sub.feed.Since(sub.cursor))
		}
		got := "nothing"
		if len(sub.pending) > 0 {
			got = sub.pending[0]
			sub.pending = sub.pending[1:]
		}
		if got != want {
			s.t.Fatalf("%s: got %s on node %d", s.where, got, node+1)
		}
	}
}

// take reads the frames of a batch.
func (sub *subscriber) take(s *script, name string, b fanout.Batch) {
	sub.cursor = b.Next
	text := string(b.Bytes)
	if sub.compressed {
		plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(b.Bytes)))
		if err != io.ErrUnexpectedEOF && len(b.Bytes) > 0 {
			s.t.Fatalf("%s: %v", s.where, err)
		}
		text = string(plain)
	}
	frames := strings.SplitAfter(text, "\n\n")
	if len(frames)-1 != b.Events {
		s.t.Fatalf("%s: %d frames are called %d events", s.where, len(frames)-1, b.Events)
	}
	for _, frame := range frames[:len(frames)-1] {
		lines := strings.Split(strings.TrimSuffix(frame, "\n\n"), "\n")
		if len(lines) != 3 {
			s.t.Fatalf("%s: frame %q", s.where, frame)
		}
		id := strings.TrimPrefix(lines[2], "id: ")
		s.lastID[name] = id
		epoch, version, _ := strings.Cut(id, "-")
		epoch, marked := strings.CutSuffix(epoch, sub.mark)
		if !marked {
			s.t.Fatalf("%s: the id %s could be of another view", s.where, id)
		}
		if s.epochs[epoch] == "" {
			s.epochs[epoch] = fmt.Sprint("e", len(s.epochs)+1)
		}
		sub.pending = append(sub.pending, fmt.Sprintf("%s %s-%s %s", strings.TrimPrefix(lines[0], "event: "), s.epochs[epoch], version, strings.TrimPrefix(lines[1], "data: ")))
	}
}
