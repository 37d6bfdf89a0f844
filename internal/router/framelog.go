package router

import (
	"slices"

	"github.com/freshet-io/freshet/internal/fanout"
)

// frameLog is the newest frames of a feed, back to back in one piece of memory. A reader that is a few frames behind
// therefore gets all of them as one slice, without copying, and a reader's place is just a number.
// Bytes that a reader may have seen never change: frames are only appended, and when the memory is full, the newest move to
// another piece while readers keep the old one as long as they need it.
type frameLog struct {
	buf   []byte
	marks []mark // one per frame in the window, oldest first
	start int    // where the first of them begins

	head   fanout.Cursor // of the newest frame
	floor  fanout.Cursor // a reader at or after it can be served from here
	lagged bool          // somebody needed more than the newest frame since the log last moved
}

// mark is where a frame ends.
type mark struct {
	cursor fanout.Cursor // of a reader that has it
	end    int
}

const (
	minLog = 1 << 10
	maxLog = 128 << 10 // what one write carries at most, unless it is a single frame; a slow reader may keep one such piece
)

func newFrameLog(head fanout.Cursor) frameLog { return frameLog{head: head, floor: head} }

// append adds the frame that leads to cursor. It copies a short one and keeps a long one, which nobody may change.
func (l *frameLog) append(cursor fanout.Cursor, frame []byte) {
	if len(frame) > maxLog/2 {
		l.buf, l.start = frame[:len(frame):len(frame)], 0
		l.marks, l.floor = append(l.marks[:0], mark{cursor, len(frame)}), l.head
		l.head = cursor
		return
	}
	if len(l.buf)+len(frame) > cap(l.buf) {
		l.move(len(frame))
	}
	l.buf = append(l.buf, frame...)
	l.marks = append(l.marks, mark{cursor, len(l.buf)})
	l.head = cursor
}

// move makes room for n more bytes, keeping the newest half of the window. The window grows only for readers that need
// one: most topics are followed by readers that keep up.
func (l *frameLog) move(n int) {
	size := max(minLog, cap(l.buf))
	if l.lagged {
		size *= 2
	}
	size = min(max(size, 4*n), maxLog) // a frame has at most half of that
	keep := 0
	for keep < len(l.marks) && len(l.buf)-l.begin(len(l.marks)-keep-1) <= (size-n)/2 {
		keep++
	}
	first := len(l.marks) - keep
	from := len(l.buf)
	if keep > 0 {
		from = l.begin(first)
	}
	if first > 0 {
		l.floor = l.marks[first-1].cursor
	}
	buf := make([]byte, 0, size)
	buf = append(buf, l.buf[from:]...)
	marks := make([]mark, 0, keep+1)
	for _, m := range l.marks[first:] {
		marks = append(marks, mark{m.cursor, m.end - from})
	}
	l.buf, l.marks, l.start, l.lagged = buf, marks, 0, false
}

// begin is where the i-th frame of the window begins.
func (l *frameLog) begin(i int) int {
	if i == 0 {
		return l.start
	}
	return l.marks[i-1].end
}

// since returns the frames after cursor, and false if the log does not reach back that far.
func (l *frameLog) since(cursor fanout.Cursor) (fanout.Batch, bool) {
	if cursor >= l.head {
		return fanout.Batch{Next: cursor}, true
	}
	if cursor < l.floor {
		l.lagged = true
		return fanout.Batch{}, false
	}
	i, found := slices.BinarySearchFunc(l.marks, cursor, func(m mark, c fanout.Cursor) int {
		switch {
		case m.cursor < c:
			return -1
		case m.cursor > c:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	l.lagged = l.lagged || len(l.marks)-i > 1
	return fanout.Batch{Bytes: l.buf[l.begin(i):len(l.buf):len(l.buf)], Events: len(l.marks) - i, Next: l.head}, true
}
