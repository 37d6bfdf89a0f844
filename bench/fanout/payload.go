package main

import (
	"math/rand/v2"
	"time"
)

// A payload is a JSON string that ends with a mark: who published it, its number, and when. The mark stands at the end, so whoever
// sees it has received all of the payload.
//
//	"…filler…~p00000007000000a1b2c3d4e5!"
const (
	markBegin = '~' // not in the filler
	markEnd   = '!'
	markLen   = 1 + 1 + 8 + 16 + 1

	// finalPublisher marks the first and the last publication of a run; the others carry the number of their publisher.
	finalPublisher = 'f'
	maxPublishers  = 8
)

// mark is what a payload tells about itself.
type mark struct {
	publisher byte // '0' and up, or finalPublisher
	seq       uint32
	at        int64 // nanoseconds on the generator's clock
}

var epoch = time.Now()

// clock is monotonic nanoseconds since the process began.
func clock() int64 { return int64(time.Since(epoch)) }

const hexDigits = "0123456789abcdef"

func appendMark(dst []byte, m mark) []byte {
	dst = append(dst, markBegin, m.publisher)
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[m.seq>>shift&15])
	}
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[m.at>>shift&15])
	}
	return append(dst, markEnd)
}

// parseMark reads a mark of exactly markLen bytes.
func parseMark(b []byte) (m mark, ok bool) {
	if len(b) != markLen || b[0] != markBegin || b[markLen-1] != markEnd {
		return m, false
	}
	seq, ok1 := parseHex(b[2:10])
	at, ok2 := parseHex(b[10:26])
	return mark{publisher: b[1], seq: uint32(seq), at: int64(at)}, ok1 && ok2
}

func parseHex(b []byte) (v uint64, ok bool) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// filler returns n bytes of text that compresses about as well as names and numbers in JSON do. The same seed gives the same.
func filler(n int, seed uint64) []byte {
	words := []string{"price ", "volume ", "Paris ", "bid ", "ask ", "open ", "delayed ", "train ", "score ", "home "}
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, 0, n+16)
	for len(b) < n {
		if rnd.IntN(3) == 0 {
			b = append(b, words[rnd.IntN(len(words))]...)
			continue
		}
		for range 4 {
			b = append(b, '0'+byte(rnd.IntN(10)))
		}
		b = append(b, ' ')
	}
	return b[:n]
}

// fillers is how many different texts a run goes through.
const fillers = 64

// payloads makes the payloads of a run, all of the same length.
type payloads struct{ filler [fillers][]byte }

func newPayloads(size int) *payloads {
	p := &payloads{}
	for i := range p.filler {
		p.filler[i] = filler(size-markLen-2, uint64(i))
	}
	return p
}

// append appends the JSON string with m in it.
func (p *payloads) append(dst []byte, m mark) []byte {
	dst = append(dst, '"')
	dst = append(dst, p.filler[m.seq%fillers]...)
	dst = appendMark(dst, m)
	return append(dst, '"')
}

// lastMark reads the mark at the end of a payload.
func lastMark(payload []byte) (m mark, text []byte, ok bool) {
	if len(payload) < markLen+1 {
		return m, nil, false
	}
	text = payload[len(payload)-1-markLen : len(payload)-1]
	m, ok = parseMark(text)
	return m, text, ok
}
