package main

import "bytes"

// scanner finds the marks in the body of one stream. Between calls it keeps only a mark that was cut in two.
type scanner struct {
	kept uint8
	tail [markLen]byte
}

// scan calls found for every mark, and returns how many bytes looked like one but were not.
func (s *scanner) scan(b []byte, found func(mark)) (malformed int) {
	if s.kept > 0 {
		n := copy(s.tail[s.kept:], b)
		if int(s.kept)+n < markLen {
			s.kept += uint8(n)
			return 0
		}
		s.kept = 0
		b = b[n:]
		if m, ok := parseMark(s.tail[:]); ok {
			found(m)
		} else {
			malformed++
		}
	}
	for {
		i := bytes.IndexByte(b, markBegin)
		if i < 0 {
			return malformed
		}
		if b = b[i:]; len(b) < markLen {
			s.kept = uint8(copy(s.tail[:], b))
			return malformed
		}
		if m, ok := parseMark(b[:markLen]); ok {
			found(m)
			b = b[markLen:]
		} else {
			malformed++
			b = b[1:]
		}
	}
}

// segments counts the ends of compressed events in a stream: each ends with an empty stored block. Small events are one
// segment each, so this counts events without the cost of inflating them for every subscriber.
type segments struct{ matched uint8 }

var segmentEnd = [4]byte{0, 0, 0xff, 0xff}

func (s *segments) count(b []byte) (n int) {
	for _, c := range b {
		switch {
		case c == segmentEnd[s.matched]:
			s.matched++
		case c == 0 && s.matched == 2: // more zeros than two
		case c == 0:
			s.matched = 1
		default:
			s.matched = 0
		}
		if s.matched == 4 {
			n++
			s.matched = 0
		}
	}
	return n
}
