package jetstream

import (
	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// head is the newest message of a topic that this node has seen, without the document in it. The zero head has seen none.
type head struct {
	known   bool
	rec     *record // never nil if known
	seq     uint64  // 0: there is no message
	expired bool
}

// none reports whether the topic has no document.
func (h *head) none() bool { return !h.known || h.expired || h.rec.isTombstone() }

func (h *head) pos() freshet.Position {
	if h.none() {
		return freshet.Position{}
	}
	return h.rec.pos
}

// isAt reports whether it is the message that a document is to replace.
func (h *head) isAt(expected freshet.Position, next *grid.Document) bool {
	return h.known && h.pos() == expected && (h.none() || next.IsFrom(h.rec.at))
}

// outcomes are what the message remembers, also if its document expired.
func (h *head) outcomes() grid.Outcomes {
	if h.rec == nil {
		return nil
	}
	return h.rec.outcomes
}

func (h *head) mark() mark {
	if h.rec == nil {
		return 0
	}
	return h.rec.mark()
}

// relation is how a message stands to the head.
type relation int

const (
	same relation = iota
	newer
	backwards // older, or of another past
)

func (h *head) relation(rec *record, seq uint64) relation {
	switch {
	case !h.known:
		return newer
	case seq == h.seq && rec.mark() == h.mark(): // a stream that was emptied uses its sequences again
		return same
	case seq == 0 && h.none():
		return newer
	case rec.isTombstone() || h.rec.isTombstone() || rec.pos.Epoch != h.rec.pos.Epoch:
		if seq > h.seq {
			return newer
		}
		return backwards
	case rec.step > h.rec.step:
		if m, ok := rec.markAt(h.rec.step); ok && m != h.mark() {
			return backwards // the stream forgot the head, and went on without it
		}
		return newer
	case rec.step == h.rec.step && len(rec.marks) > 0 && rec.mark() == h.mark():
		return same
	}
	return backwards
}
