package main

import (
	"bytes"
	"compress/flate"
	"fmt"
	"testing"
)

func TestMarksAreFoundHoweverTheStreamIsCut(t *testing.T) {
	var text []byte
	var want []mark
	p := newPayloads(100)
	for i := range uint32(5) {
		m := mark{byte('0' + i), i + 1, int64(i) * 1e9}
		want = append(want, m)
		text = append(text, "id: x-1\nevent: patch\ndata: "...)
		text = append(p.append(text, m), "\n\n:heartbeat\n\n"...)
	}
	for size := 1; size <= len(text); size++ {
		var s scanner
		var got []mark
		malformed := 0
		for rest := text; len(rest) > 0; {
			n := min(size, len(rest))
			malformed += s.scan(rest[:n], func(m mark) { got = append(got, m) })
			rest = rest[n:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || malformed > 0 {
			t.Fatalf("in pieces of %d: %v, %d malformed", size, got, malformed)
		}
	}
}

func TestDamagedMarksAreCounted(t *testing.T) {
	text := appendMark(nil, mark{'1', 1, 1})
	text[7] = '\r'
	text = appendMark(text, mark{'1', 2, 2})
	var s scanner
	found := 0
	if n := s.scan(text, func(mark) { found++ }); n != 1 || found != 1 {
		t.Errorf("%d malformed, %d found", n, found)
	}
}

func TestEverySegmentIsCountedOnce(t *testing.T) {
	var text bytes.Buffer
	for i := range 50 { // each written like a shared segment: compressed on its own and flushed
		w, err := flate.NewWriter(&text, flate.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "id: x-%d\nevent: patch\ndata: %s\n\n", i, filler(200, uint64(i)))
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for size := 1; size < 300; size++ {
		var s segments
		n := 0
		for rest := text.Bytes(); len(rest) > 0; {
			k := min(size, len(rest))
			n += s.count(rest[:k])
			rest = rest[k:]
		}
		if n != 50 {
			t.Fatalf("in pieces of %d: %d segments", size, n)
		}
	}
}

func TestZerosBeforeASegmentEndDoNotHideIt(t *testing.T) {
	var s segments
	if n := s.count([]byte{0, 0, 0, 0, 0xff, 0xff, 0, 0xff, 0, 0, 0xff, 0xff}); n != 2 {
		t.Errorf("%d segments", n)
	}
}
