package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
	"github.com/nats-io/nats.go"
)

// nodes opens several grids of one cluster.
func nodes(t *testing.T, count int, opts jetstream.Options) []*jetstream.Grid {
	t.Helper()
	if opts.Prefix == "" {
		opts.Prefix = jetstream.NewPrefix()
	}
	var all []*jetstream.Grid
	for range count {
		all = append(all, open(t, opts))
	}
	return all
}

func TestADocumentReachesTheOtherNodes(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2, jetstream.Options{})
	there := gridtest.Watch(t, n[1], "a")
	pos := gridtest.Put(t, n[0], "a", freshet.Position{}, "1")
	gridtest.Eventually(t, func() bool { return there.Last().Position == pos })
	next, err := n[1].Put(t.Context(), "a", pos, grid.Document{Content: grid.Raw("2"), At: time.Now(), Patch: []byte("p"), PatchFrom: pos})
	if err != nil {
		t.Fatal(err)
	}
	here := gridtest.Watch(t, n[0], "a")
	if d := here.Last(); d.Position != next || gridtest.Body(d) != "2" {
		t.Errorf("got %s at %v", gridtest.Body(d), d.Position)
	}
	if d := there.Last(); string(d.Patch) != "p" || d.PatchFrom != pos {
		t.Errorf("the patch is %q from %v", d.Patch, d.PatchFrom)
	}
}

func TestLargeDocumentsTravelInParts(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2, jetstream.Options{})
	there := gridtest.Watch(t, n[1], "a")
	var pos freshet.Position
	for _, size := range []int{3 << 20, 5 << 20, 10, 4 << 20} {
		noise := make([]byte, size) // what cannot be compressed
		for i := range noise {
			noise[i] = byte(rand.IntN(256))
		}
		pos = gridtest.Put(t, n[0], "a", pos, string(noise))
		gridtest.Eventually(t, func() bool { return there.Last().Position == pos })
		if !bytes.Equal(there.Last().Content.Bytes(), noise) {
			t.Errorf("%d bytes arrived as %d others", size, len(there.Last().Content.Bytes()))
		}
	}
}

// TestTheTraceOfAPublicationGoesWithItsRevision, and only with that one, whether it is heard or has to be read.
func TestTheTraceOfAPublicationGoesWithItsRevision(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 3<<20) // too long for one message, so that the other node reads it
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	n := nodes(t, 2, jetstream.Options{})
	here, there := gridtest.Watch(t, n[0], "a"), gridtest.Watch(t, n[1], "a")
	var pos freshet.Position
	for _, doc := range []grid.Document{
		{Content: grid.Raw("1"), Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{Content: grid.Raw("2")},
		{Content: grid.Raw(noise), Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"},
		{Content: grid.Raw(noise[1:])},
	} {
		var err error
		doc.At = time.Now()
		if pos, err = n[0].Put(t.Context(), "a", pos, doc); err != nil {
			t.Fatal(err)
		}
		for _, w := range []*gridtest.Watched{here, there} {
			gridtest.Eventually(t, func() bool { return w.Last().Position == pos })
			if got := w.Last().Trace; got != doc.Trace {
				t.Errorf("of %q a node is told %q", doc.Trace, got)
			}
		}
	}
}

// stepped is content that counts how it is asked for.
type stepped struct {
	whole string
	delta string
}

func (s stepped) Bytes() []byte { return []byte(s.whole) }
func (s stepped) Delta() []byte { return []byte(s.delta) }

// replay does what the owner of the deltas would do.
func replay(held string, c grid.Content) string {
	steps, ok := c.(grid.Steps)
	if !ok {
		return string(c.Bytes())
	}
	if steps.Base != nil {
		held = string(steps.Base)
	}
	for _, d := range steps.Deltas {
		held += string(d)
	}
	return held
}

func TestASmallStepOfALargeDocumentMovesTheStepOnly(t *testing.T) {
	t.Parallel()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	opts := jetstream.Options{Prefix: jetstream.NewPrefix()}
	n := nodes(t, 2, opts)
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var moved atomic.Int64
	if _, err := conn.Subscribe(opts.Prefix+".>", func(m *nats.Msg) { moved.Add(int64(len(m.Data))) }); err != nil {
		t.Fatal(err)
	}
	conn.Flush()

	var mu sync.Mutex
	held := ""
	stop, err := n[1].Watch(t.Context(), "a", func(d grid.Document) {
		mu.Lock()
		defer mu.Unlock()
		if d.Content != nil {
			held = replay(held, d.Content)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var noise strings.Builder
	for range 100_000 {
		fmt.Fprintf(&noise, "%016x", rand.Uint64())
	}
	whole := noise.String()
	pos := gridtest.Put(t, n[0], "a", freshet.Position{}, whole)
	pos, err = n[0].Put(t.Context(), "a", pos, grid.Document{Content: stepped{whole, ""}, At: time.Now()}) // begins the chain
	if err != nil {
		t.Fatal(err)
	}
	gridtest.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return held == whole })
	moved.Store(0)
	const steps = 300
	for i := range steps {
		delta := fmt.Sprintf("<%d %0100d>", i, i)
		whole += delta
		if pos, err = n[i%2].Put(t.Context(), "a", pos, grid.Document{Content: stepped{whole, delta}, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	gridtest.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return held == whole })
	t.Logf("a step of 100 bytes in a document of %d moves %d bytes, the copies to nodes included", len(whole), moved.Load()/steps)
	if each := moved.Load() / steps; each > 8<<10 {
		t.Errorf("a step of 100 bytes in %d moved %d bytes", len(whole), each)
	}
	d := gridtest.Document(t, n[0], "a")
	if got := replay("", d.Content); got != whole {
		t.Errorf("a newcomer reads %d bytes, not %d", len(got), len(whole))
	}
}

func TestWhatIsLostOnTheWayIsFound(t *testing.T) {
	t.Parallel()
	opts := jetstream.Options{Prefix: jetstream.NewPrefix()}
	n := nodes(t, 2, opts)
	there := gridtest.Watch(t, n[1], "a")
	pos := gridtest.Put(t, n[0], "a", freshet.Position{}, "1")
	gridtest.Eventually(t, func() bool { return there.Last().Position == pos })
	jetstream.Deafen(n[1], "a") // from now on its subscription hears nothing
	pos = gridtest.Put(t, n[0], "a", pos, "2")
	if err := n[1].Confirm(t.Context(), "a", there.Last().Position); !errors.Is(err, grid.ErrConflict) {
		t.Errorf("an old position is confirmed: %v", err)
	}
	gridtest.Eventually(t, func() bool { return there.Last().Position == pos })
	if err := n[1].Confirm(t.Context(), "a", pos); err != nil {
		t.Errorf("the newest position is not confirmed: %v", err)
	}
}

// interrupted is the way to a server on which something happens first when parts of a document are asked for.
type interrupted struct {
	*natsserver.Server
	first *atomic.Pointer[func()]
}

func (i interrupted) InProcessConn() (net.Conn, error) {
	conn, err := i.Server.InProcessConn()
	return interruptedConn{conn, i.first}, err
}

type interruptedConn struct {
	net.Conn
	first *atomic.Pointer[func()]
}

func (c interruptedConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("multi_last")) && bytes.Contains(b, []byte(".part.")) {
		if first := c.first.Swap(nil); first != nil {
			(*first)()
		}
	}
	return c.Conn.Write(b)
}

// TestWhatIsPutWhileAWatchBeginsIsToldAtOnce: the watch has read the message before, and has yet to read what belongs to it.
func TestWhatIsPutWhileAWatchBeginsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	var first atomic.Pointer[func()]
	prefix := jetstream.NewPrefix()
	here, there := open(t, jetstream.Options{Prefix: prefix}), open(t, jetstream.Options{Prefix: prefix, InProcess: interrupted{s, &first}})
	var noise strings.Builder
	for range 1000 {
		fmt.Fprintf(&noise, "%016x", rand.Uint64())
	}
	for i, atOnce := 0, 0; atOnce < 3; i++ {
		if i == 20 {
			t.Fatal("it is told only when everything is compared")
		}
		topic := strconv.Itoa(i)
		store := func(expected freshet.Position) freshet.Position {
			pos, err := here.Put(t.Context(), topic, expected, grid.Document{Content: stepped{noise.String(), "step"}, At: time.Now()})
			if err != nil {
				t.Error(err)
			}
			return pos
		}
		pos := store(freshet.Position{})
		meanwhile := func() {
			pos = store(pos)
			time.Sleep(100 * time.Millisecond) // it is heard
		}
		first.Store(&meanwhile)
		w := gridtest.Watch(t, there, topic)
		if first.Load() != nil {
			t.Fatal("nothing happened meanwhile")
		}
		gridtest.Eventually(t, func() bool { return w.Last().Position == pos })
		if !jetstream.Compared(there, topic) {
			atOnce++
		}
	}
}

func TestAnEmptiedStreamBeginsANewEpoch(t *testing.T) {
	t.Parallel()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	opts := jetstream.Options{Prefix: jetstream.NewPrefix(), Memory: true}
	n := nodes(t, 2, opts)
	there := gridtest.Watch(t, n[1], "a")
	pos := gridtest.Put(t, n[0], "a", freshet.Position{}, "1")
	for i := range 5 {
		pos = gridtest.Put(t, n[0], "a", pos, fmt.Sprint(i))
	}
	gridtest.Eventually(t, func() bool { return there.Last().Position == pos })
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Request("$JS.API.STREAM.DELETE."+strings.ReplaceAll(strings.ToUpper(opts.Prefix), "-", "_")+"_DOCUMENTS", nil, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	gridtest.Eventually(t, func() bool { // the grid makes the stream again, and notices that it is empty
		d, err := n[0].Document(t.Context(), "a")
		return err == nil && d.IsZero()
	})
	second := gridtest.Put(t, n[0], "a", freshet.Position{}, "new")
	if second.Epoch == pos.Epoch {
		t.Error("the epoch is the same")
	}
	gridtest.Eventually(t, func() bool { return there.Last().Position == second })
}

// nobody reports whether it is certain that nobody has joined a topic.
func nobody(t *testing.T, g grid.Grid, topic string) bool {
	t.Helper()
	is, err := g.Present(t.Context(), topic)
	return !is && err == nil
}

func TestPresenceIsSeenFromOtherNodes(t *testing.T) {
	t.Parallel()
	n := nodes(t, 3, jetstream.Options{})
	var mu sync.Mutex
	var news []string
	defer n[2].OnPresence(func(topic string, present bool) {
		mu.Lock()
		defer mu.Unlock()
		news = append(news, fmt.Sprint(topic, present))
	})()
	heard := func(want ...string) {
		t.Helper()
		gridtest.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return fmt.Sprint(news) == fmt.Sprint(want) })
	}
	present := func(g *jetstream.Grid) bool {
		is, err := g.Present(t.Context(), "a")
		return is && err == nil
	}
	leave0, _ := n[0].Join(t.Context(), "a")
	leave1, _ := n[1].Join(t.Context(), "a")
	heard("atrue")
	gridtest.Eventually(t, func() bool { return present(n[2]) })
	leave0()
	gridtest.Eventually(t, func() bool { return present(n[0]) && present(n[2]) })
	leave1()
	heard("atrue", "afalse")
	gridtest.Eventually(t, func() bool { return nobody(t, n[0], "a") && nobody(t, n[2], "a") })

	// A node that dies leaves too, and one that comes late learns who is there.
	_, _ = n[0].Join(t.Context(), "b")
	heard("atrue", "afalse", "btrue")
	late := make(chan string, 10)
	defer n[1].OnPresence(func(topic string, present bool) { late <- fmt.Sprint(topic, present) })()
	if got := <-late; got != "btrue" {
		t.Errorf("a latecomer hears %s", got)
	}
	n[0].Close()
	gridtest.Eventually(t, func() bool { return nobody(t, n[1], "b") })
	heard("atrue", "afalse", "btrue", "bfalse")
}

func TestNoticesReachOtherNodes(t *testing.T) {
	t.Parallel()
	opts := jetstream.Options{Prefix: jetstream.NewPrefix()}
	n := nodes(t, 2, opts)
	var mu sync.Mutex
	var got []grid.Notice
	defer n[1].OnNotice(func(n grid.Notice) { mu.Lock(); defer mu.Unlock(); got = append(got, n) })()
	has := func(want int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == want }
	}
	notify := func(id string) {
		if err := n[0].Notify(t.Context(), grid.Notice{Scope: grid.ScopeTopic, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	notify("x")
	gridtest.Eventually(t, has(1))
	jetstream.DeafenNotices(n[1])
	notify("y")
	gridtest.Eventually(t, has(2))
	if got[1] != (grid.Notice{Scope: grid.ScopeTopic, ID: "y"}) {
		t.Errorf("got %v", got)
	}
}

func TestALeaseHasOneHolder(t *testing.T) {
	t.Parallel()
	n := nodes(t, 3, jetstream.Options{})
	for round := range 20 {
		name := fmt.Sprint("lease", round)
		var winners atomic.Int64
		var wg sync.WaitGroup
		for i, g := range n {
			wg.Go(func() {
				me := fmt.Sprint("node", i)
				if now, err := g.Swap(t.Context(), name, "", me, 10*time.Second); err != nil {
					t.Error(err)
				} else if now == me {
					winners.Add(1)
				}
			})
		}
		wg.Wait()
		if winners.Load() != 1 {
			t.Errorf("%d nodes hold the lease", winners.Load())
		}
	}
}

func TestCountersAreExactOverNodes(t *testing.T) {
	t.Parallel()
	n := nodes(t, 3, jetstream.Options{})
	var mu sync.Mutex
	sums := map[int64]bool{}
	var wg sync.WaitGroup
	for _, g := range n {
		for range 20 {
			wg.Go(func() {
				for range 10 {
					sum, err := g.Add(t.Context(), "c", 1, time.Hour)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if sums[sum] {
						t.Errorf("two got %d", sum)
					}
					sums[sum] = true
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if sum, err := n[0].Add(t.Context(), "c", 0, time.Hour); err != nil || sum != 600 {
		t.Errorf("the sum is %d, %v", sum, err)
	}
}

func TestALimitIsExactOverNodes(t *testing.T) {
	t.Parallel()
	n := nodes(t, 3, jetstream.Options{})
	const limit = 5000
	var unknown atomic.Int64 // on a machine that is too busy to answer in time: nobody knows what was taken then
	spend := func(g *jetstream.Grid) bool {
		for {
			sum, err := g.Spend(t.Context(), "c", limit, time.Hour)
			if freshet.KindOf(err) == freshet.Unavailable {
				unknown.Add(1)
				continue
			}
			if err != nil {
				t.Error(err)
			}
			return err == nil && sum <= limit
		}
	}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			for spend(n[i%3]) {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() > limit {
		t.Errorf("%d passed", passed.Load())
	}
	// Whatever nodes took and did not use comes back: all of the limit can be used, and not one more.
	gridtest.Eventually(t, func() bool {
		if passed.Load() < limit && spend(n[0]) {
			passed.Add(1)
		}
		return passed.Load() == limit || unknown.Load() > 0
	})
	for _, g := range n {
		for spend(g) {
			if passed.Add(1) > limit {
				t.Fatal("one more passed")
			}
		}
	}
}

// TestAFullStreamSaysSo, and takes what makes room.
func TestAFullStreamSaysSo(t *testing.T) {
	t.Parallel()
	g := open(t, jetstream.Options{Prefix: jetstream.NewPrefix(), MaxBytes: 64 << 10})
	put := func(topic string, size int) error {
		noise := make([]byte, size)
		rand.NewChaCha8([32]byte{}).Read(noise) // which nothing compresses
		_, err := g.Put(t.Context(), topic, freshet.Position{}, grid.Document{Content: grid.Raw(noise), At: time.Now()})
		return err
	}
	if err := put("first", 40<<10); err != nil {
		t.Fatal(err)
	}
	if err := put("second", 40<<10); freshet.KindOf(err) != freshet.Unavailable || !strings.Contains(err.Error(), "grid.max_bytes") {
		t.Errorf("a document that does not fit: %v", err)
	}
	if err := g.Check(t.Context()); err != nil {
		t.Errorf("a node with a full stream does not work any more: %v", err)
	}
	if err := g.Delete(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if err := put("second", 40<<10); err != nil {
		t.Errorf("after there was room made: %v", err)
	}
}

func TestServersThatWillNotDoAreRefused(t *testing.T) {
	t.Parallel()
	refused := func(opts jetstream.Options, want string) {
		t.Helper()
		opts.StartTimeout = 3 * time.Second
		g, err := jetstream.Open(t.Context(), opts)
		if err == nil {
			g.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v shows the password", err)
		}
	}
	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	go func() {
		for {
			conn, err := old.Accept()
			if err != nil {
				return
			}
			go pretend(conn)
		}
	}()
	refused(jetstream.Options{URL: "nats://u:hunter2@" + old.Addr().String()}, "has version 2.9.0; Freshet needs 2.15 or newer")

	without, err := natsserver.Start(t.Context(), natsserver.Options{Name: "plain", Dir: t.TempDir(), WithoutJetStream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	refused(jetstream.Options{InProcess: without}, "runs without JetStream")

	small, err := natsserver.Start(t.Context(), natsserver.Options{Name: "small", Dir: t.TempDir(), MaxPayload: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	refused(jetstream.Options{InProcess: small}, "set its max_payload to")

	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	prefix := jetstream.NewPrefix()
	open(t, jetstream.Options{Prefix: prefix})
	refused(jetstream.Options{InProcess: s, Prefix: prefix, Memory: true}, "exists with other settings: storage is file, not memory")
	refused(jetstream.Options{InProcess: s, Prefix: prefix, Streams: 4}, "grid.streams must be as it was")
	refused(jetstream.Options{InProcess: s, Replicas: 3}, "set grid.replicas to 1")
	refused(jetstream.Options{URL: "nats://u:hunter2@127.0.0.1:1"}, "NATS cannot be reached at 127.0.0.1:1")
}

// pretend is a server that is too old.
func pretend(conn net.Conn) {
	defer conn.Close()
	fmt.Fprintf(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.9.0\",\"max_payload\":1048576,\"headers\":true}\r\n")
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte("PING")) {
			_, _ = io.WriteString(conn, "PONG\r\n")
		}
	}
}

func TestANodeWithoutServersIsNotReadyAndComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *natsserver.Server {
		s, err := natsserver.Start(context.Background(), natsserver.Options{Name: "own", Dir: dir, Listen: listen})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start("127.1.2.3:0") // nobody else listens or connects from there, so the port is free again after s has closed
	address := strings.TrimPrefix(s.URL(), "nats://")
	g := open(t, jetstream.Options{URL: s.URL()})
	there := gridtest.Watch(t, g, "a")
	pos := gridtest.Put(t, g, "a", freshet.Position{}, "1")
	if err := g.Check(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	s.Close()
	gridtest.Eventually(t, func() bool { return g.Check(t.Context()) != nil })
	if err := g.Check(t.Context()); !strings.Contains(err.Error(), "NATS stored nothing for") {
		t.Errorf("it says %v", err)
	}
	s = start(address)
	defer s.Close()
	gridtest.Eventually(t, func() bool { return g.Check(t.Context()) == nil })
	pos = gridtest.Put(t, g, "a", pos, "2")
	if there.Last().Position != pos {
		t.Errorf("the watch is at %v", there.Last().Position)
	}
}

// depose makes every conditional write to the grid's documents, or about them, be refused once by a leader that was cut off, came back,
// and does not know yet that there is another one.
func depose(t *testing.T, prefix string, refuse func(expected int) (last int, answer bool)) {
	t.Helper()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	var mu sync.Mutex
	known := map[string]bool{} // by their bodies, which have marks of their own
	for _, subject := range []string{".doc.>", ".beat.>"} {
		_, err = conn.Subscribe(prefix+subject, func(m *nats.Msg) {
			expected, err := strconv.Atoi(m.Header.Get("Nats-Expected-Last-Subject-Sequence"))
			if err != nil || strings.Contains(m.Subject, ".beat.") && m.Header.Get("Nats-Expected-Last-Subject-Sequence-Subject") == "" {
				return // only a sign of life
			}
			mu.Lock()
			defer mu.Unlock()
			if last, answer := refuse(expected); answer && !known[string(m.Data)] {
				known[string(m.Data)] = true
				_ = m.Respond(fmt.Appendf(nil, `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: %d"},"stream":"x","seq":0}`, last))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestALeaderThatLostItsOfficeIsNotBelieved: its refusal comes before the other's answer, who stores the document.
func TestALeaderThatLostItsOfficeIsNotBelieved(t *testing.T) {
	t.Parallel()
	for what, behind := range map[string]bool{"which has not heard of the newest": true, "which has just heard": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			refuse := func(expected int) (int, bool) { return expected + 1, true }
			if behind {
				refuse = func(expected int) (int, bool) { return expected - 1, expected > 0 }
			}
			opts := jetstream.Options{Prefix: jetstream.NewPrefix()}
			n := nodes(t, 2, opts)
			depose(t, opts.Prefix, refuse)
			gridtest.Watch(t, n[0], "a")
			there := gridtest.Watch(t, n[1], "a")
			var pos freshet.Position
			for i := range 100 {
				next, err := n[0].Put(t.Context(), "a", pos, grid.Document{Content: grid.Raw(strconv.Itoa(i)), At: time.Now()})
				if err != nil {
					t.Fatalf("document %d: %v", i, err)
				}
				if i > 0 && next.Version != pos.Version+1 {
					t.Fatalf("document %d is at %v, the one before was at %v", i, next, pos)
				}
				pos = next
				if err := n[0].Confirm(t.Context(), "a", pos); err != nil && behind {
					t.Fatalf("document %d is not confirmed: %v", i, err)
				}
			}
			gridtest.Eventually(t, func() bool { return there.Last().Position == pos })
			if got := gridtest.Body(there.Last()); got != "99" {
				t.Error(got)
			}
		})
	}
}
