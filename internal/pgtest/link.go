package pgtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Link is a way to a PostgreSQL that can go dark: what is sent over it then arrives once it is open again, and until then nobody
// is told anything. A server that hangs, or that is cut off, looks like that.
type Link struct {
	URL string // of the database, over the link

	t        testing.TB
	target   string
	listener net.Listener

	mu    sync.Mutex
	open  *sync.Cond
	dark  bool              // Guarded by mu.
	over  bool              // Guarded by mu.
	conns map[net.Conn]bool // Guarded by mu.
}

// NewLink lays a link to a database. It ends with the test.
func NewLink(t testing.TB, database string) *Link {
	t.Helper()
	where, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{t: t, target: where.Host, conns: map[net.Conn]bool{}}
	l.open = sync.NewCond(&l.mu)
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	where.Host = l.listener.Addr().String()
	l.URL = where.String()
	var running sync.WaitGroup
	running.Go(func() { l.run(&running) })
	t.Cleanup(func() { l.end(); running.Wait() })
	return l
}

// GoDark lets nothing through from now on.
func (l *Link) GoDark() { l.set(true) }

// Open lets everything through again, first what was held back.
func (l *Link) Open() { l.set(false) }

func (l *Link) set(dark bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dark = dark
	l.open.Broadcast()
}

func (l *Link) end() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.open.Broadcast()
	for conn := range l.conns {
		_ = conn.Close()
	}
}

func (l *Link) run(running *sync.WaitGroup) {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.target)
		if err != nil || !l.keep(from, to) {
			_ = from.Close()
			continue
		}
		running.Go(func() { l.carry(from, to) })
		running.Go(func() { l.carry(to, from) })
	}
}

func (l *Link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		l.conns[conn] = true
		if l.over {
			_ = conn.Close()
		}
	}
	return !l.over
}

func (l *Link) carry(from, to net.Conn) {
	_, _ = io.Copy(farEnd{l, to}, from)
	l.wait() // that somebody hung up is held back as well
	_, _ = from.Close(), to.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
	delete(l.conns, to)
}

func (l *Link) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.dark && !l.over {
		l.open.Wait()
	}
}

// farEnd is where what a link holds back arrives.
type farEnd struct {
	link *Link
	net.Conn
}

// Write implements io.Writer.
func (e farEnd) Write(b []byte) (int, error) {
	e.link.wait()
	return e.Conn.Write(b)
}
