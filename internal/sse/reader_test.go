package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet/internal/sse"
)

func readAll(t *testing.T, src io.Reader, limit int) ([]sse.Event, error) {
	t.Helper()
	r := sse.NewReader(src, limit)
	var all []sse.Event
	for {
		e, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

func TestWhatWasWrittenIsReadBack(t *testing.T) {
	long := []byte(`"` + strings.Repeat("x", 200_000) + `"`)
	want := []sse.Event{
		{Retry: 3 * time.Second},
		{ID: "a-1", Name: "snapshot", Data: []byte(`{"a":1}`)},
		{ID: "a-2", Name: "patch", Data: long},
		{Retry: 30 * time.Second, Name: "error", Data: []byte(`{"code":40100}`)},
	}
	wire := []byte(sse.Heartbeat)
	wire = sse.AppendRetry(wire, 3*time.Second)
	for _, e := range want[1:] {
		wire = sse.AppendEvent(wire, e)
		wire = sse.AppendComment(wire, 2048)
	}
	for name, src := range map[string]io.Reader{
		"at once":         strings.NewReader(string(wire)),
		"byte by byte":    iotest.OneByteReader(strings.NewReader(string(wire))),
		"with CRLF":       strings.NewReader(strings.ReplaceAll(string(wire), "\n", "\r\n")),
		"with a mark":     strings.NewReader("\xef\xbb\xbf" + string(wire)),
		"data with error": iotest.DataErrReader(strings.NewReader(string(wire))),
	} {
		got, err := readAll(t, src, 1<<20)
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: ended with %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", name, diff)
		}
	}
}

func TestReadingFollowsTheRules(t *testing.T) {
	for wire, want := range map[string][]sse.Event{
		"data\n\n":                                {{Data: []byte{}}},
		"data:a\ndata: b\n\n":                     {{Data: []byte("a\nb")}},
		"data:  a\n\n":                            {{Data: []byte(" a")}},
		"id: 1\n\n":                               {{ID: "1"}},
		"id: 1\x00\ndata: x\n\n":                  {{Data: []byte("x")}},
		"retry: soon\nretry: -1\ndata: x\n\n":     {{Data: []byte("x")}},
		"banana: 1\n: comment\n\n\n\ndata: x\n\n": {{Data: []byte("x")}},
		"event: patch\ndata: cut off":             nil,
		"event: patch\ndata: cut off\n":           nil,
	} {
		got, _ := readAll(t, strings.NewReader(wire), 100)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: want (-), got (+):\n%s", wire, diff)
		}
	}
}

func TestAnEventBeyondTheLimitIsRefusedBeforeItIsHeld(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), &repeat{'x'})
	if _, err := readAll(t, endless, 100_000); !errors.Is(err, sse.ErrTooLong) {
		t.Errorf("one endless line: %v", err)
	}
	if _, err := readAll(t, strings.NewReader(strings.Repeat("data: 0123456789\n", 20)), 100); !errors.Is(err, sse.ErrTooLong) {
		t.Errorf("many lines: %v", err)
	}
}

type repeat struct{ c byte }

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.c
	}
	return len(p), nil
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("id: 1\nevent: patch\ndata: []\n\n"))
	f.Add([]byte("retry: 10\r\n\r\n:x\n\ndata\n\n"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		whole, _ := readAll(t, strings.NewReader(string(wire)), 1<<16)
		pieces, _ := readAll(t, iotest.OneByteReader(strings.NewReader(string(wire))), 1<<16)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("at once (-), in pieces (+):\n%s", diff)
		}
	})
}
