package fanout

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Conn is an open stream as an operator sees it.
type Conn struct {
	ID     string // never that of another stream, also not later
	Group  *Group
	Since  time.Time
	Cursor Cursor
	Behind bool // its socket is full
	Loop   bool // an event loop serves it

	// Only Describe fills these in: they have to be asked for.
	Remote string
	Bytes  uint64 // sent
}

// Node is the first part of every ID, up to the first dash.
func (f *Fanout) Node() string { return f.node }

// Conns lists the streams of the groups that match. It does not disturb deliveries, however many there are.
func (f *Fanout) Conns(match func(*Group) bool) []Conn {
	all := f.loopConns(match)
	f.mu.Lock()
	defer f.mu.Unlock()
	for serial, p := range f.portables {
		if match(p.g) {
			all = append(all, Conn{
				ID: portableID(f.node, serial), Group: p.g, Since: p.since, Cursor: Cursor(p.cursor.Load()),
				Remote: p.remote, Bytes: p.bytes.Load(),
			})
		}
	}
	return all
}

// Describe fills in what Conns left out. What is gone meanwhile keeps its gaps.
func (f *Fanout) Describe(conns []Conn) { f.describeLoops(conns) }

// Cut ends one stream, with a last frame for its client. It returns false if there is no such stream any more.
func (f *Fanout) Cut(id string, final []byte) bool {
	rest, ours := strings.CutPrefix(id, f.node+"-")
	if !ours {
		return false
	}
	var serial uint64
	if n, _ := fmt.Sscanf(rest, "g-%d", &serial); n == 1 && id == portableID(f.node, serial) {
		f.mu.Lock()
		defer f.mu.Unlock() // to the end: the ResponseWriter of a handler that returned belongs to somebody else
		p := f.portables[serial]
		return p != nil && p.end(final)
	}
	return f.cutLoop(id, final)
}

func portableID(node string, serial uint64) string { return fmt.Sprintf("%s-g-%d", node, serial) }

// observed is what an operator may know of a stream that has a goroutine.
type observed struct {
	since  time.Time
	remote string
	bytes  atomic.Uint64
	cursor atomic.Uint64
	cut    chan []byte // holds the last frame
}

// end has the stream's goroutine end it.
func (p *portable) end(final []byte) bool {
	select {
	case p.cut <- final:
		p.hurry()
		return true
	default:
		return false // somebody else did
	}
}

// list adds the stream to those with goroutines, and returns how to remove it.
func (f *Fanout) list(p *portable) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	serial := f.serial
	if f.portables == nil {
		f.portables = make(map[uint64]*portable)
	}
	f.portables[serial] = p
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.portables, serial)
	}
}
