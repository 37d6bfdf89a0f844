package main

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

const witnessedStream = ":hi\n\nid: e-1\nevent: snapshot\ndata: {\"fixed\":\"x\",\"live\":\"a\"}\n\n" +
	"id: e-2\nevent: patch\ndata: [{\"op\":\"replace\",\"path\":\"/live\",\"value\":\"b\"}]\n\n" +
	":heartbeat\n\nid: e-5\nevent: patch\ndata: [{\"op\":\"replace\",\"path\":\"/live\",\"value\":\"c\"}]\n\n"

func TestPatchesAppliedInOrderReachTheLastDocument(t *testing.T) {
	for size := 1; size <= len(witnessedStream); size++ {
		var w witness
		for rest := []byte(witnessedStream); len(rest) > 0; {
			n := min(size, len(rest))
			w.feed(rest[:n])
			rest = rest[n:]
		}
		w.finish()
		if w.stats.Err != nil || w.stats.Snapshots != 1 || w.stats.Patches != 2 || w.stats.Comments != 2 {
			t.Fatalf("%+v", w.stats)
		}
		if err := w.holds([]byte(`{"live": "c", "fixed": "x"}`)); err != nil {
			t.Fatal(err)
		}
		if w.holds([]byte(`{"live":"b","fixed":"x"}`)) == nil || w.holds([]byte(`{"live":"c"}`)) == nil {
			t.Fatal("another document is taken for the right one")
		}
	}
}

func TestCompressedStreamsAreCheckedToo(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for line := range strings.Lines(witnessedStream) {
		if _, err := z.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	w := witness{gzip: true}
	w.feed(packed.Bytes()) // without an end, like a stream that goes on
	w.finish()
	if err := w.holds([]byte(`{"live":"c","fixed":"x"}`)); err != nil || w.stats.Err != nil {
		t.Fatal(err, w.stats.Err)
	}
}

func TestWitnessNoticesWhatIsWrong(t *testing.T) {
	const snapshot = "id: e-7\nevent: snapshot\ndata: {\"live\":\"a\"}\n\n"
	for name, text := range map[string]string{
		"patch before a document": "id: e-1\nevent: patch\ndata: []\n\n",
		"an id that falls":        snapshot + "id: e-6\nevent: patch\ndata: []\n\n",
		"an id that stays":        snapshot + "id: e-7\nevent: patch\ndata: []\n\n",
		"no id":                   "event: snapshot\ndata: {}\n\n",
		"a member that is not":    snapshot + "id: e-8\nevent: patch\ndata: [{\"op\":\"replace\",\"path\":\"/other\",\"value\":1}]\n\n",
		"a broken document":       "id: e-1\nevent: snapshot\ndata: {\n\n",
		"an error event":          "event: error\ndata: {\"code\":4001}\n\n",
	} {
		var w witness
		w.feed([]byte(text))
		w.finish()
		if w.stats.Err == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
}
