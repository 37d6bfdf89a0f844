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
			l.append(cursor, frame)
			frames, cursors = append(frames, frame), append(cursors, cursor)
			reader := fanout.Cursor(rapid.IntRange(0, int(cursor)).Draw(t, "reader"))
			batch, ok := l.since(reader)
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
			if !bytes.Equal(batch.Bytes, want) || batch.Events != events || batch.Next != max(reader, l.head) {
				t.Fatalf("reader at %d got %d bytes, %d events, next %d; want %d, %d, %d", reader, len(batch.Bytes), batch.Events, batch.Next, len(want), events, l.head)
			}
			if len(want) > maxLog && events > 1 {
				t.Fatalf("%d bytes in one batch", len(want))
			}
			kept = append(kept, seen{batch.Bytes, want})
		}
		for _, k := range kept {
			if !bytes.Equal(k.got, k.want) {
				t.Fatal("bytes changed after a reader had them")
			}
		}
	})
}

func TestLogStaysSmallWhileReadersKeepUp(t *testing.T) {
	l := newFrameLog(0)
	for i := range fanout.Cursor(10_000) {
		l.append(i+1, []byte(fmt.Sprintf("%200d", i)))
		if b, ok := l.since(i); !ok || b.Events != 1 {
			t.Fatalf("reader at %d: %v, %v", i, b.Events, ok)
		}
	}
	if cap(l.buf) > 2*minLog {
		t.Errorf("the log takes %d bytes", cap(l.buf))
	}
}
