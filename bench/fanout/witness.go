package main

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// witness reads a stream the way a client does: it inflates if it must, splits lines, dispatches events and, where the stream is
// patches, applies them to the document. A few subscribers of each run have one; the others only look at marks. All of that is done
// at the end: it costs more than the deliveries themselves, and would be taken from the servers that are measured.
type witness struct {
	gzip bool
	kept [][]byte // the stream, in chunks
	size int      // of all that is kept

	line  []byte // not complete yet
	name  string
	id    string
	data  []string
	doc   map[string]json.RawMessage
	last  string // the event id before
	stats witnessed
}

type witnessed struct {
	Events    int
	Snapshots int
	Patches   int
	Comments  int
	Err       error
}

const (
	maxKept  = 256 << 20 // bytes of a stream
	chunkLen = 1 << 20
)

func (w *witness) feed(b []byte) {
	if w.size += len(b); w.size > maxKept {
		w.kept = nil
		w.fail(errors.New("the stream is too long to check"))
		return
	}
	for len(b) > 0 {
		last := len(w.kept) - 1
		if last < 0 || len(w.kept[last]) == chunkLen {
			w.kept = append(w.kept, make([]byte, 0, chunkLen))
			continue
		}
		n := min(len(b), chunkLen-len(w.kept[last]))
		w.kept[last] = append(w.kept[last], b[:n]...)
		b = b[n:]
	}
}

const gzipHeaderLen = 10

// finish reads all that came. A compressed stream that never ends has no checksum, so its end comes unexpectedly.
func (w *witness) finish() {
	kept := w.kept
	w.kept = nil
	if !w.gzip {
		for _, b := range kept {
			w.text(b)
		}
		return
	}
	packed := bytes.Join(kept, nil)
	if len(packed) < gzipHeaderLen {
		return
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed[gzipHeaderLen:])))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		w.fail(fmt.Errorf("inflate: %w", err))
	}
	w.text(text)
}

func (w *witness) fail(err error) {
	if w.stats.Err == nil {
		w.stats.Err = err
	}
}

func (w *witness) text(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			w.line = append(w.line, b...)
			return
		}
		w.line = append(w.line, b[:i]...)
		w.takeLine(strings.TrimSuffix(string(w.line), "\r"))
		w.line = w.line[:0]
		b = b[i+1:]
	}
}

func (w *witness) takeLine(line string) {
	if line == "" {
		w.dispatch()
		return
	}
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "":
		w.stats.Comments++
	case "event":
		w.name = value
	case "id":
		w.id = value
	case "data":
		w.data = append(w.data, value)
	}
}

func (w *witness) dispatch() {
	name, data := w.name, w.data
	w.name, w.data = "", nil
	if data == nil {
		return
	}
	w.stats.Events++
	text := []byte(strings.Join(data, "\n"))
	switch name {
	case "snapshot":
		w.stats.Snapshots++
		w.doc = nil
		if err := json.Unmarshal(text, &w.doc); err != nil {
			w.fail(fmt.Errorf("snapshot: %w", err))
		}
		w.checkID()
	case "patch":
		w.stats.Patches++
		if err := w.patch(text); err != nil {
			w.fail(fmt.Errorf("patch: %w", err))
		}
		w.checkID()
	case "error":
		w.fail(fmt.Errorf("error event: %s", text))
	}
}

// checkID sees that event ids, epoch-version, rise.
func (w *witness) checkID() {
	epoch, version, ok := cutLast(w.id, "-")
	lastEpoch, lastVersion, hasLast := cutLast(w.last, "-")
	n, err := strconv.ParseUint(version, 10, 64)
	before, _ := strconv.ParseUint(lastVersion, 10, 64)
	if !ok || err != nil || hasLast && epoch == lastEpoch && n <= before {
		w.fail(fmt.Errorf("event id %q after %q", w.id, w.last))
	}
	w.last = w.id
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// patch applies what the documents of this benchmark need: replacing a member of the top object.
func (w *witness) patch(text []byte) error {
	var ops []operation
	if err := json.Unmarshal(text, &ops); err != nil {
		return err
	}
	if w.doc == nil {
		return errors.New("came before any document")
	}
	for _, op := range ops {
		key := strings.TrimPrefix(op.Path, "/")
		if _, has := w.doc[key]; op.Op != "replace" || !has || strings.ContainsAny(key, "/~") {
			return fmt.Errorf("unexpected operation %s %s", op.Op, op.Path)
		}
		w.doc[key] = op.Value
	}
	return nil
}

// holds reports whether the document is now exactly want.
func (w *witness) holds(want []byte) error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(want, &doc); err != nil {
		return err
	}
	if len(doc) != len(w.doc) {
		return fmt.Errorf("%d members instead of %d", len(w.doc), len(doc))
	}
	for key, value := range doc {
		if !bytes.Equal(value, w.doc[key]) {
			return fmt.Errorf("member %q is %.40s…, not %.40s…", key, w.doc[key], value)
		}
	}
	return nil
}
