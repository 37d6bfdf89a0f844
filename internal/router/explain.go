package router

import (
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
)

// Lately is what became of the publications to a topic since this node follows it.
type Lately struct {
	Followed bool // false: this node knows nothing about the topic at present
	Position freshet.Position
	At       time.Time // of the newest document; zero: there is none

	Changed, Identical, Dropped, Refused Recent
	Vanished                             time.Time // when a document was last lost, by its TTL or by deletion
}

// Recent counts something, and remembers the last time.
type Recent struct {
	Count uint64
	Last  time.Time
	Why   string // of refusals: what the publisher was told
}

func (l *Lately) add(v verdict, at time.Time, err error) {
	var r *Recent
	switch v {
	case changed:
		l.Identical = Recent{} // it is the run of identical ones that explains silence
		r = &l.Changed
	case identical:
		r = &l.Identical
	case dropped:
		r = &l.Dropped
	case refused:
		r = &l.Refused
		if e, ok := errors.AsType[*freshet.Error](err); ok {
			r.Why = e.Msg
		}
	default:
		return
	}
	r.Count++
	r.Last = at
}

// Merge adds what another node knows.
func (l *Lately) Merge(other *Lately) {
	l.Followed = l.Followed || other.Followed
	if other.At.After(l.At) {
		l.Position, l.At = other.Position, other.At
	}
	for _, pair := range [][2]*Recent{
		{&l.Changed, &other.Changed}, {&l.Identical, &other.Identical}, {&l.Dropped, &other.Dropped}, {&l.Refused, &other.Refused},
	} {
		sum, more := pair[0], pair[1]
		sum.Count += more.Count
		if more.Last.After(sum.Last) {
			sum.Last, sum.Why = more.Last, more.Why
		}
	}
	if other.Vanished.After(l.Vanished) {
		l.Vanished = other.Vanished
	}
}

// Lately returns what happened to a topic, as far as this node knows.
func (r *Router) Lately(topicID string) Lately {
	r.mu.Lock()
	t := r.topics[topicID]
	r.mu.Unlock()
	if t == nil {
		return Lately{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lately
	l.Followed, l.Position, l.At = true, t.log.pos, t.log.at
	return l
}

// Head is where a reader is that has everything, or before.
func (f *Feed) Head() fanout.Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.head
}
