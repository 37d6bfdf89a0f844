package router

import (
	"github.com/freshet-io/freshet/internal/sse"
)

const patchEvent = "patch"

// frameCache holds the frames of the newest revision that were needed already, so that each is made once for everybody.
type frameCache struct {
	keys   []frameKey
	frames [][]byte
}

type frameKey struct {
	event      string // its name; patches and full documents have different ones
	compressed bool
}

func (c *frameCache) reset() {
	clear(c.frames)
	c.keys, c.frames = c.keys[:0], c.frames[:0]
}

// size returns how many bytes the frames take.
func (c *frameCache) size() (n int) {
	for _, f := range c.frames {
		n += len(f)
	}
	return n
}

func (c *frameCache) get(key frameKey, encode func() []byte) []byte {
	for i, k := range c.keys {
		if k == key {
			return c.frames[i]
		}
	}
	frame := encode()
	c.keys, c.frames = append(c.keys, key), append(c.frames, frame)
	return frame
}

// encode makes the frame of an event at the newest version.
func (f *Feed) encode(name string, data []byte) []byte {
	at := f.topic.log.pos
	at.Epoch += f.mark
	e := sse.Event{ID: at.String(), Name: name, Data: data}
	frame := sse.AppendEvent(make([]byte, 0, sse.EventSize(e)), e)
	if !f.variant.Compressed {
		return frame
	}
	packed := sse.AppendSegment(nil, frame)
	f.topic.router.stats.uncompressed.Add(uint64(len(frame)))
	f.topic.router.stats.compressed.Add(uint64(len(packed)))
	return packed
}

// wholeLen is how long the frame of the whole document is. Where frames are compressed it is an estimate: nobody compresses a
// document only to know how much was saved by not sending it.
func (f *Feed) wholeLen() int {
	n := f.uncompressedLen()
	if f.variant.Compressed && f.ratio > 0 {
		return int(float64(n) * f.ratio)
	}
	return n
}

func (f *Feed) uncompressedLen() int {
	t := f.topic
	data := 0
	switch {
	case f.view != nil:
		data = f.view.Len()
	case t.log.state != nil:
		data = t.log.state.Len()
	}
	return sse.FrameLen(t.log.pos.Len()+len(f.mark), len(f.variant.Event), data)
}

// learnRatio remembers how well the whole document compressed.
func (f *Feed) learnRatio(compressed int) {
	if f.variant.Compressed {
		f.ratio = float64(compressed) / float64(f.uncompressedLen())
	}
}
