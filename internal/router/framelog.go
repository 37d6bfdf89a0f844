package router

import (
	"cmp"
	"slices"

	"github.com/freshet-io/freshet/internal/fanout"
)

// frameLog is the newest frames of a feed, back to back in a few pieces of memory. A reader that is some frames behind
// therefore gets many of them as one slice, without copying, and a reader's place is just a number.
// Bytes that a reader may have seen never change: frames are only appended, and a full piece is followed by another while
// readers keep the old one as long as they need it.
type frameLog struct {
	segments []*segment // oldest first; frames are appended to the last one

	head  fanout.Cursor // of the newest frame
	floor fanout.Cursor // a reader at or after it can be served from here
	taken fanout.Cursor // the newest one that somebody was given
	need  int           // bytes that readers were behind, lately

	delivery fanout.Delivery // of the newest frame that somebody follows, at followed; nil: there was none
	followed fanout.Cursor
}

// segment is one piece of memory with whole frames.
type segment struct {
	buf   []byte
	marks []mark        // one per frame, oldest first
	floor fanout.Cursor // of a reader that has everything before it
}

// mark is where a frame ends.
type mark struct {
	cursor fanout.Cursor // of a reader that has it
	end    int
	full   int // what this frame and those before it in the segment would be as whole documents
}

const (
	minSegment = 1 << 10
	maxSegment = 64 << 10  // what one write carries at most, unless it is a single frame; a slow reader may keep one such piece
	maxLog     = 512 << 10 // how far behind readers may be and still get the very frames they missed
)

func newFrameLog(head fanout.Cursor) frameLog { return frameLog{head: head, floor: head, taken: head} }

// append adds the frame that leads to cursor; as a whole document it would have full bytes. It copies a short one and keeps a
// long one, which nobody may change.
func (l *frameLog) append(cursor fanout.Cursor, frame []byte, full int) {
	var s *segment
	if len(frame) > maxSegment/2 {
		s = l.add(frame[:0:len(frame)])
		s.buf = frame[:len(frame):len(frame)]
	} else {
		if n := len(l.segments); n > 0 {
			s = l.segments[n-1]
		}
		if s == nil || len(s.buf)+len(frame) > cap(s.buf) {
			s = l.add(make([]byte, 0, min(max(minSegment, l.need, 4*len(frame)), maxSegment)))
		}
		s.buf = append(s.buf, frame...)
	}
	if n := len(s.marks); n > 0 {
		full += s.marks[n-1].full
	}
	s.marks = append(s.marks, mark{cursor, len(s.buf), full})
	l.head = cursor
}

// add begins a segment, and lets go of old ones that hardly any reader needs. Most topics are followed by readers that keep up.
func (l *frameLog) add(buf []byte) *segment {
	s := &segment{buf: buf, floor: l.head}
	keep := min(max(minSegment, 2*l.need), maxLog)
	first := len(l.segments)
	for size := 0; first > 0 && size < keep; first-- {
		size += len(l.segments[first-1].buf)
	}
	l.segments = append(slices.Delete(l.segments, 0, first), s)
	l.floor = l.segments[0].floor
	l.need -= l.need / 4 // readers that catch up need less
	return s
}

// since returns frames after cursor, as many as lie in one piece, and false if the log does not reach back that far.
func (l *frameLog) since(cursor fanout.Cursor) (fanout.Batch, bool) {
	if cursor >= l.head {
		l.taken = max(l.taken, cursor)
		return fanout.Batch{Next: cursor}, true
	}
	if cursor < l.floor {
		if n := l.estimate(cursor); n <= maxLog { // a longer log would have done
			l.need = max(l.need, n)
		}
		return fanout.Batch{}, false
	}
	n := len(l.segments) - 1
	behind := 0
	for ; l.segments[n].floor > cursor; n-- {
		behind += len(l.segments[n].buf)
	}
	batch := l.segments[n].since(cursor)
	l.need = max(l.need, behind+len(batch.Bytes))
	batch.More = n < len(l.segments)-1
	l.taken = max(l.taken, batch.Next)
	if l.delivery != nil && cursor < l.followed && l.followed <= batch.Next {
		batch.Delivery = l.delivery
	}
	return batch, true
}

// estimate is about how many bytes a reader at cursor is behind.
func (l *frameLog) estimate(cursor fanout.Cursor) int {
	bytes, frames := l.size()
	if frames == 0 {
		return maxLog + 1
	}
	return bytes / frames * int(min(l.head-cursor, maxLog))
}

func (l *frameLog) size() (bytes, frames int) {
	for _, s := range l.segments {
		bytes, frames = bytes+len(s.buf), frames+len(s.marks)
	}
	return bytes, frames
}

// since returns the frames of the segment after cursor.
func (s *segment) since(cursor fanout.Cursor) fanout.Batch {
	i, found := slices.BinarySearchFunc(s.marks, cursor, func(m mark, c fanout.Cursor) int { return cmp.Compare(m.cursor, c) })
	if found {
		i++
	}
	var before mark
	if i > 0 {
		before = s.marks[i-1]
	}
	last := s.marks[len(s.marks)-1]
	return fanout.Batch{
		Bytes: s.buf[before.end:len(s.buf):len(s.buf)], Events: len(s.marks) - i, Full: last.full - before.full, Next: last.cursor,
	}
}
