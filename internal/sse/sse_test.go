package sse_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/sse"
)

func TestFramesAreExactlyTheseBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"snapshot", sse.AppendEvent(nil, sse.Event{ID: "e1-7", Name: "snapshot", Data: []byte(`{"a":1}`)}),
			"event: snapshot\ndata: {\"a\":1}\nid: e1-7\n\n"},
		{"error with retry", sse.AppendEvent(nil, sse.Event{Retry: 30 * time.Second, Name: "error", Data: []byte(`{}`)}),
			"retry: 30000\nevent: error\ndata: {}\n\n"},
		{"line breaks between tokens", sse.AppendEvent(nil, sse.Event{ID: "a-1", Data: []byte("{\r\n\"a\":\r1,\n\"b\":2}")}),
			"data: {\"a\":1,\"b\":2}\nid: a-1\n\n"},
		{"line breaks in our own fields", sse.AppendEvent(nil, sse.Event{ID: "a\ndata: x", Name: "b\rdata: y", Data: []byte("1")}),
			"event: b\ndata: 1\nid: a\n\n"},
		{"padding", sse.AppendComment(nil, 3), ":   \n\n"},
		{"retry alone", sse.AppendRetry(nil, 1500*time.Millisecond), "retry: 1500\n\n"},
		{"heartbeat", []byte(sse.Heartbeat), ":heartbeat\n\n"},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestEventSizeIsAnUpperBound(t *testing.T) {
	e := sse.Event{Retry: 1<<63 - 1, ID: "abc-18446744073709551615", Name: "snapshot", Data: []byte("[1,2]")}
	if n := len(sse.AppendEvent(nil, e)); n > sse.EventSize(e) {
		t.Errorf("frame of %d bytes, bound %d", n, sse.EventSize(e))
	}
}

func FuzzEveryJSONValueIsOneEvent(f *testing.F) {
	f.Add([]byte(`{"a": "x\u2028\n"}`), "e-1", "snapshot")
	f.Add([]byte("[\r1,\r\n2,\n\n3]"), "", "patch")
	f.Add([]byte("\"\xe2\x80\xa8\""), "e\x00-1", "p\nq")
	f.Fuzz(func(t *testing.T, data []byte, id, name string) {
		if !json.Valid(data) {
			return
		}
		frame := sse.AppendEvent(nil, sse.Event{ID: id, Name: name, Data: data})
		got := parseStream(string(frame) + sse.Heartbeat)
		if len(got.events) != 1 || len(got.comments) != 1 {
			t.Fatalf("%q was read as %+v", frame, got)
		}
		var want, have bytes.Buffer
		json.Compact(&want, data)
		if err := json.Compact(&have, []byte(got.events[0].data)); err != nil || want.String() != have.String() {
			t.Fatalf("sent %q, read %q", data, got.events[0].data)
		}
		if bytes.ContainsRune(frame, '\r') || bytes.Count(frame, []byte("\ndata:")) > 1 || !bytes.HasSuffix(frame, []byte("\n\n")) ||
			strings.Contains(strings.TrimSuffix(string(frame), "\n\n"), "\n\n") {
			t.Fatalf("framing of %q", frame)
		}
	})
}

// frames of very different size and compressibility.
func frames(seed uint64) [][]byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var all [][]byte
	for _, n := range []int{1, 20, 300, 4 << 10, 70 << 10, 1 << 20} {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte('a' + rnd.IntN(26))
		}
		repeated := bytes.Repeat([]byte(`{"price":101.25,"symbol":"ABC"},`), n/32+1)
		all = append(all, sse.AppendEvent(nil, sse.Event{ID: "e-1", Data: noise}), sse.AppendEvent(nil, sse.Event{ID: "e-2", Data: repeated}))
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return append(all, []byte(sse.Heartbeat))
}

func TestSegmentsDecodeAsTheyArriveInAnyOrder(t *testing.T) {
	for _, enc := range []sse.Encoding{sse.Gzip, sse.Deflate} {
		t.Run(enc.String(), func(t *testing.T) {
			for seed := range uint64(3) {
				pr, pw := io.Pipe()
				defer pr.Close()
				go pw.Write([]byte(enc.StreamHeader()))
				var r io.Reader
				var err error
				if enc == sse.Gzip {
					r, err = gzip.NewReader(pr)
				} else {
					r, err = zlib.NewReader(pr)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, frame := range frames(seed) {
					go pw.Write(sse.AppendSegment(nil, frame))
					got := make([]byte, len(frame))
					// Reads no byte of the next segment: a frame must come out whole before anything follows it.
					if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, frame) {
						t.Fatalf("frame of %d bytes: %v", len(frame), err)
					}
				}
			}
		})
	}
}

func TestSegmentsShrinkWhatRepeats(t *testing.T) {
	frame := bytes.Repeat([]byte(`{"op":"replace","path":"/7/price","value":101.25},`), 100)
	if n := len(sse.AppendSegment(nil, frame)); n > len(frame)/10 {
		t.Errorf("%d bytes became %d", len(frame), n)
	}
	if n := len(sse.AppendSegment(nil, nil)); n != 0 {
		t.Errorf("nothing became %d bytes", n)
	}
}

func TestWholeBodiesCarryTheirChecksum(t *testing.T) {
	for _, body := range frames(9) {
		zr, err := gzip.NewReader(bytes.NewReader(sse.Gzip.AppendWhole(nil, body)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(zr); err != nil || !bytes.Equal(got, body) {
			t.Errorf("gzip: %v", err)
		}
		dr, err := zlib.NewReader(bytes.NewReader(sse.Deflate.AppendWhole(nil, body)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(dr); err != nil || !bytes.Equal(got, body) {
			t.Errorf("deflate: %v", err)
		}
		if got := sse.Identity.AppendWhole(nil, body); !bytes.Equal(got, body) {
			t.Error("identity changed the body")
		}
	}
}

func FuzzSegmentsRoundTrip(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {}\n\n"), []byte(":heartbeat\n\n"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		stream := sse.AppendSegment(sse.AppendSegment(nil, a), b)
		got, err := io.ReadAll(flate.NewReader(bytes.NewReader(stream)))
		if err != io.ErrUnexpectedEOF || !bytes.Equal(got, append(append([]byte{}, a...), b...)) {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func BenchmarkSegment(b *testing.B) {
	frame := sse.AppendEvent(nil, sse.Event{ID: "mfz3k1a2b3-12345", Name: "patch", Data: []byte(`[{"op":"replace","path":"/price","value":101.25},{"op":"replace","path":"/volume","value":55012}]`)})
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = sse.AppendSegment(buf[:0], frame)
	}
	b.ReportMetric(float64(len(buf)), "bytes/frame")
}
