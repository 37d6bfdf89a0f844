package jetstream_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
)

// link is a way to a server that can go dark: nothing passes any more, and nobody is told.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	lit   *sync.Cond
	dark  bool
	over  bool
	conns []net.Conn
	taken int // connections

	deaf, mute int // up to which connection nothing comes from the server, or gets to it
}

func newLink(t *testing.T, target string) *link {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{target: u.Host}
	l.lit = sync.NewCond(&l.mu)
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { l.carry(conn) })
		}
	})
	t.Cleanup(func() {
		l.listener.Close()
		l.set(func() {
			l.over = true
			for _, c := range l.conns {
				c.Close()
			}
		})
		wg.Wait()
	})
	return l
}

func (l *link) url() string { return "nats://" + l.listener.Addr().String() }

func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.lit.Broadcast()
}

func (l *link) goDark()  { l.set(func() { l.dark = true }) }
func (l *link) goLight() { l.set(func() { l.dark = false }) }

// cut ends all connections.
func (l *link) cut() {
	l.set(func() {
		for _, c := range l.conns {
			c.Close()
		}
		l.conns = nil
	})
}

func (l *link) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// loseAnswers keeps what servers say from the connections that there are; those that come are not concerned.
func (l *link) loseAnswers() { l.set(func() { l.deaf = l.taken }) }

// loseAll lets nothing through on the connections that there are.
func (l *link) loseAll() { l.set(func() { l.deaf, l.mute = l.taken, l.taken }) }

// passable waits for light and reports whether there ever will be.
func (l *link) passable(isBarred func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.dark || isBarred != nil && isBarred()) && !l.over {
		l.lit.Wait()
	}
	return !l.over
}

func (l *link) carry(here net.Conn) {
	defer here.Close()
	_ = here.(*net.TCPConn).SetReadBuffer(64 << 10) // so that whoever writes into the dark notices soon
	if !l.passable(nil) {
		return
	}
	there, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer there.Close()
	var number int
	l.set(func() {
		l.conns, l.taken = append(l.conns, here, there), l.taken+1
		number = l.taken
	})
	var both sync.WaitGroup
	both.Go(func() { l.pass(here, there, func() bool { return number <= l.mute }) })
	both.Go(func() { l.pass(there, here, func() bool { return number <= l.deaf }) })
	both.Wait()
}

func (l *link) pass(from, to net.Conn, isBarred func() bool) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for l.passable(isBarred) {
		n, err := from.Read(buffer)
		if err != nil || !l.passable(isBarred) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// before waits as eventually does, but for something that an older rule brings about too, only too late.
func before(t *testing.T, limit time.Duration, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about within %v", limit)
		}
	}
}

func noise(size int) string {
	var text strings.Builder
	_, _ = io.CopyN(&text, rand.NewChaCha8([32]byte{byte(size)}), int64(size))
	return text.String()
}

// TestALinkThatGoesDarkUnderLargeDocumentsIsGivenUp, long before the minute is over that the library waits by itself with its lock held.
func TestALinkThatGoesDarkUnderLargeDocumentsIsGivenUp(t *testing.T) {
	t.Parallel()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	links := []*link{newLink(t, s.URL()), newLink(t, s.URL())}
	prefix := jetstream.NewPrefix()
	there := open(t, jetstream.Options{Prefix: prefix})
	here := open(t, jetstream.Options{Prefix: prefix, URL: links[0].url() + "," + links[1].url()})
	w := gridtest.Watch(t, here, "a")
	pos := gridtest.Put(t, there, "a", freshet.Position{}, "1")
	gridtest.Eventually(t, func() bool { return w.Last().Position == pos })
	used := links[0]
	if used.connections() == 0 {
		used = links[1]
	}
	large := noise(3 << 20)
	var wg sync.WaitGroup
	defer wg.Wait()
	begin := make(chan struct{})
	for i := range 8 {
		topic := strconv.Itoa(i)
		gridtest.Watch(t, here, topic)
		expected := gridtest.Put(t, here, topic, freshet.Position{}, "small")
		wg.Go(func() { // what becomes of it is of no interest
			<-begin
			_, _ = here.Put(t.Context(), topic, expected, grid.Document{Content: grid.Raw(large), At: time.Now()})
		})
	}
	used.goDark()
	close(begin)
	pos = gridtest.Put(t, there, "a", pos, "2")
	before(t, 45*time.Second, func() bool { return w.Last().Position == pos })
}

// TestANodeLeavesAServerThatHasNoMajority: it is the one that is connected, and does nothing; the other has the streams.
func TestANodeLeavesAServerThatHasNoMajority(t *testing.T) {
	t.Parallel()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	lonely, err := natsserver.Start(t.Context(), natsserver.Options{Name: "lonely", Dir: t.TempDir(), Listen: "127.0.0.1:0", WithoutJetStream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer lonely.Close()
	good, bad := newLink(t, s.URL()), newLink(t, lonely.URL())
	bad.goDark()
	g := open(t, jetstream.Options{URL: good.url() + "," + bad.url()})
	bad.goLight()
	good.goDark()
	good.cut()
	gridtest.Eventually(t, func() bool { return bad.connections() > 0 && g.Check(t.Context()) != nil })
	good.goLight()
	gridtest.Eventually(t, func() bool { return g.Check(t.Context()) == nil })
}

// TestANodeThatLostItsLinkMayHaveSubscribers: the server says that nobody listens, as it does if there are none.
func TestANodeThatLostItsLinkMayHaveSubscribers(t *testing.T) {
	t.Parallel()
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(t, s.URL())
	prefix := jetstream.NewPrefix()
	here, there := open(t, jetstream.Options{Prefix: prefix}), open(t, jetstream.Options{Prefix: prefix, URL: l.url()})
	if _, err := there.Join(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	gridtest.Eventually(t, func() bool { return nobody(t, here, "b") }) // it is certain of what it says
	for _, fault := range []func(){
		l.cut, // for a moment
		func() { l.goDark(); l.cut() },
	} {
		fault()
		for doubt := false; !doubt; {
			is, err := here.Present(t.Context(), "a")
			if !is && err == nil {
				t.Fatal("nobody is there, for certain")
			}
			doubt = !is || l.connections() > 1 // it is back
		}
	}
	l.goLight()
	gridtest.Eventually(t, func() bool { is, err := here.Present(t.Context(), "a"); return is && err == nil })
	gridtest.Eventually(t, func() bool { return nobody(t, here, "b") }) // soon after everybody is back
}

// TestNobodyIsMissedWhileTheServersRestart: nodes come back one after the other.
func TestNobodyIsMissedWhileTheServersRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *natsserver.Server {
		s, err := natsserver.Start(context.Background(), natsserver.Options{Name: "restarted", Dir: dir, Listen: listen})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start("127.1.2.4:0") // nobody else listens or connects from there, so the port is free again after s has closed
	address := strings.TrimPrefix(s.URL(), "nats://")
	slow := newLink(t, s.URL())
	prefix := jetstream.NewPrefix()
	here, there := open(t, jetstream.Options{Prefix: prefix, URL: s.URL()}), open(t, jetstream.Options{Prefix: prefix, URL: slow.url()})
	if _, err := there.Join(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	gridtest.Eventually(t, func() bool { return nobody(t, here, "b") })
	slow.goDark()
	s.Close()
	s = start(address)
	defer func() { s.Close() }()
	stored := func() bool { return here.Check(t.Context()) == nil }
	for back := false; !back; {
		is, err := here.Present(t.Context(), "a")
		if !is && err == nil {
			t.Fatal("nobody is there, for certain")
		}
		if stored() {
			slow.goLight() // only now the other one gets a connection
		}
		back = is && err == nil
	}
}

// TestAWriterWithoutAnAnswerFindsOutWhatBecameOfItsDocument, however many others were put meanwhile.
func TestAWriterWithoutAnAnswerFindsOutWhatBecameOfItsDocument(t *testing.T) {
	t.Parallel()
	for name, isStored := range map[string]bool{"it was stored": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := jetstream.Server()
			if err != nil {
				t.Fatal(err)
			}
			l := newLink(t, s.URL())
			prefix := jetstream.NewPrefix()
			here, there := open(t, jetstream.Options{Prefix: prefix, URL: l.url()}), open(t, jetstream.Options{Prefix: prefix})
			gridtest.Watch(t, here, "a")
			seen := gridtest.Watch(t, there, "a")
			pos := gridtest.Put(t, here, "a", freshet.Position{}, "first")
			gridtest.Eventually(t, func() bool { return seen.Last().Position == pos })
			others := func() {
				for i, at := 0, seen.Last().Position; i < 20; i++ {
					at = gridtest.Put(t, there, "a", at, strconv.Itoa(i))
				}
			}
			if isStored {
				l.loseAnswers()
			} else {
				l.loseAll()
				others()
			}
			result := make(chan error)
			go func() {
				_, err := here.Put(t.Context(), "a", pos, grid.Document{Content: grid.Raw("mine"), At: time.Now()})
				result <- err
			}()
			if isStored {
				gridtest.Eventually(t, func() bool { return gridtest.Body(seen.Last()) == "mine" })
				others()
			}
			switch err := <-result; {
			case isStored && err != nil:
				t.Errorf("it was stored: %v", err)
			case !isStored && !errors.Is(err, grid.ErrConflict):
				t.Errorf("it was not stored: %v", err)
			}
		})
	}
}
