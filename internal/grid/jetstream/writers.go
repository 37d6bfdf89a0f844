package jetstream

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// writers are the last writes that nodes made to a topic, the newest first: one for each node, which makes one at a time. A node that got no
// answer finds out by it whether it was stored, however many others have written since; its marks go back eight writes only.
type writers []lastWrite

type lastWrite struct {
	node uint32
	mark mark
}

// maxWriters bounds them; a node that wrote before so many others is forgotten.
const maxWriters = 16

const writerBytes = 4 + 8

func writerOf(node string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	return h.Sum32()
}

// with returns them after another write. It leaves w as it is.
func (w writers) with(node uint32, m mark) writers {
	next := append(make(writers, 0, len(w)+1), lastWrite{node, m})
	for _, other := range w {
		if other.node != node && len(next) < maxWriters {
			next = append(next, other)
		}
	}
	return next
}

// String is what stands in the header of a message.
func (w writers) String() string {
	raw := make([]byte, 0, len(w)*writerBytes)
	for _, one := range w {
		raw = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(raw, one.node), uint64(one.mark))
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

// parseWriters takes what it does not understand for nothing.
func parseWriters(text string) (w writers) {
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(raw)%writerBytes != 0 {
		return nil
	}
	for one := range slices.Chunk(raw, writerBytes) {
		w = append(w, lastWrite{binary.BigEndian.Uint32(one), mark(binary.BigEndian.Uint64(one[4:]))})
	}
	return w
}

// newestOf returns a function that finds the newest write of a node that a message tells of, within an epoch: in another one nothing is known,
// because the topic may have been deleted. If the node is not in the message, it may have been dropped: by nodes of an older version, or
// because there are many.
func newestOf(node uint32, epoch string) func(*message) (mark, bool) {
	return func(msg *message) (mark, bool) {
		rec, err := msg.record()
		if err != nil || rec.isTombstone() || rec.pos.Epoch != epoch {
			return 0, false
		}
		i := slices.IndexFunc(rec.writers, func(w lastWrite) bool { return w.node == node })
		if i < 0 {
			return 0, false
		}
		return rec.writers[i].mark, true
	}
}
