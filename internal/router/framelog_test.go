package router

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/freshet-io/freshet/internal/fanout"
	"pgregory.net/rapid"
)

func TestLogGivesEveryReaderExactlyWhatItMisses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newFrameLog(3)
		var frames [][]byte // frames[i] leads to cursors[i]
		var cursors []fanout.Cursor
		type seen struct{ got, want []byte }
		var kept []seen
		cursor := fanout.Cursor(3)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			cursor += fanout.Cursor(rapid.IntRange(1, 3).Draw(t, "gap"))
			size := rapid.SampledFrom([]int{1, 10, 200, 3000, 32 << 10, 32<<10 + 1, 70_000}).Draw(t, "size")
			frame := bytes.Repeat([]byte{byte(cursor)}, size)
			l.append(cursor, frame, 0)
			frames, cursors = append(frames, frame), append(cursors, cursor)
			reader := fanout.Cursor(rapid.IntRange(0, int(cursor)).Draw(t, "reader"))
			got, ok := drain(t, &l, reader)
			if !ok {
				if reader >= l.floor {
					t.Fatalf("refused a reader at %d with the floor at %d", reader, l.floor)
				}
				continue
			}
			var want []byte
			events := 0
			for i, c := range cursors {
				if c > reader {
					want = append(want, frames[i]...)
					events++
				}
			}
			if !bytes.Equal(got.Bytes, want) || got.Events != events || got.Next != max(reader, l.head) {
				t.Fatalf("reader at %d got %d bytes, %d events, next %d; want %d, %d, %d", reader, len(got.Bytes), got.Events, got.Next, len(want), events, l.head)
			}
			kept = append(kept, seen{got.Bytes, want})
		}
		for _, k := range kept {
			if !bytes.Equal(k.got, k.want) {
				t.Fatal("bytes changed after a reader had them")
			}
		}
	})
}

// drain reads as long as there is more, and holds every batch to its limits.
func drain(t *rapid.T, l *frameLog, reader fanout.Cursor) (all fanout.Batch, ok bool) {
	all.Next = reader
	for {
		batch, ok := l.since(all.Next)
		if !ok {
			return all, false
		}
		if len(batch.Bytes) > maxSegment && batch.Events > 1 {
			t.Fatalf("%d bytes in one batch", len(batch.Bytes))
		}
		if all.Events == 0 {
			all.Bytes = batch.Bytes // the log's own memory, to see that it does not change
		} else {
			all.Bytes = append(all.Bytes[:len(all.Bytes):len(all.Bytes)], batch.Bytes...)
		}
		all.Events, all.Next = all.Events+batch.Events, batch.Next
		if !batch.More {
			return all, true
		}
	}
}

func TestALogGrowsForReadersThatAreALittleBehindAndNotForTheLost(t *testing.T) {
	frame := bytes.Repeat([]byte{'x'}, 1000)
	l := newFrameLog(0)
	missed := 0
	for i := range fanout.Cursor(2000) {
		l.append(i+1, frame, 0)
		if i%100 != 99 {
			continue
		}
		for at := i - 99; at <= i; { // a reader that is 100 frames behind
			batch, ok := l.since(at)
			if !ok {
				missed++
				break
			}
			at = batch.Next
		}
		if _, ok := l.since(0); ok && i > 999 {
			t.Fatal("a reader that stopped at the beginning still finds its frames")
		}
	}
	if missed > 5 {
		t.Errorf("%d of 20 times a reader a little behind did not find its frames", missed)
	}
	if n, _ := l.size(); n > maxLog {
		t.Errorf("the log takes %d bytes", n)
	}
	for i := range fanout.Cursor(2000) { // everybody keeps up again
		l.append(2001+i, frame, 0)
		l.since(2000 + i)
	}
	if n, _ := l.size(); n > 16*len(frame) {
		t.Errorf("the log still takes %d bytes", n)
	}
}

func TestLogStaysSmallWhileReadersKeepUp(t *testing.T) {
	l := newFrameLog(0)
	for i := range fanout.Cursor(10_000) {
		l.append(i+1, []byte(fmt.Sprintf("%200d", i)), 0)
		if b, ok := l.since(i); !ok || b.Events != 1 {
			t.Fatalf("reader at %d: %v, %v", i, b.Events, ok)
		}
	}
	if n, _ := l.size(); n > 3*minSegment {
		t.Errorf("the log takes %d bytes", n)
	}
}
