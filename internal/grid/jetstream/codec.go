package jetstream

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// What stands in NATS messages. Every message begins with the format and the marks of the newest writes to its subject, so
// that a writer who got no answer can find out whether it was his: by his own mark, even after others wrote.

// format is the first byte of every message. A node that meets another one leaves the message alone.
const format = 1

// mark names one write.
type mark uint64

func newMark() mark { return mark(rand.Uint64()) } //nolint:gosec // it must be unique, not secret

// maxMarks is how many writes back a message can tell whose they were.
const maxMarks = 8

// follow returns the marks of a message that m replaces the owner of marks with.
func follow(m mark, marks []mark) []mark {
	return append([]mark{m}, marks[:min(len(marks), maxMarks-1)]...)
}

var errFormat = errors.New("grid: a message is in no form that this version can read")

func seal(marks []mark, payload []byte) []byte {
	out := make([]byte, 0, 2+8*len(marks)+len(payload))
	out = append(out, format, byte(len(marks)))
	for _, m := range marks {
		out = binary.BigEndian.AppendUint64(out, uint64(m))
	}
	return append(out, payload...)
}

func unseal(body []byte) (marks []mark, payload []byte, err error) {
	if len(body) < 2 || body[0] != format {
		return nil, nil, errFormat
	}
	n := int(body[1])
	body = body[2:]
	if n > maxMarks || len(body) < 8*n {
		return nil, nil, errFormat
	}
	for ; n > 0; n-- {
		marks = append(marks, mark(binary.BigEndian.Uint64(body)))
		body = body[8:]
	}
	return marks, body, nil
}

func appendBytes(out, b []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

func appendList(out []byte, list [][]byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(list)))
	for _, b := range list {
		out = appendPacked(out, b)
	}
	return out
}

// packAbove is the length from which compressing is worth its time.
const packAbove = 512

// appendPacked appends bytes, compressed if that makes them shorter. The lowest bit of the length tells.
func appendPacked(out, b []byte) []byte {
	if len(b) >= packAbove {
		if packed := pack(b); len(packed) < len(b) {
			out = binary.AppendUvarint(out, uint64(len(packed))<<1|1)
			return append(out, packed...)
		}
	}
	return append(binary.AppendUvarint(out, uint64(len(b))<<1), b...)
}

// maxUnpacked bounds what a message may unpack to, against nonsense in the stream.
const maxUnpacked = 256 << 20

// codecs are shared by everybody: EncodeAll and DecodeAll keep no state between calls.
var codecs = sync.OnceValue(func() (c struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}) {
	// Neither constructor fails with constant options; a nil here would be noticed by the first test.
	c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false))
	c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxUnpacked))
	return c
})

func pack(b []byte) []byte { return codecs().enc.EncodeAll(b, make([]byte, 0, len(b)/2)) }

func unpack(b []byte) ([]byte, error) { return codecs().dec.DecodeAll(b, nil) }

// reader takes a payload apart. After the first error everything reads as zero.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail() {
	r.err, r.rest = errFormat, nil
}

func (r *reader) take(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) bytes() []byte { return r.take(r.uvarint()) }

func (r *reader) packed() []byte {
	n := r.uvarint()
	b := r.take(n >> 1)
	if n&1 == 0 || r.err != nil {
		return b
	}
	plain, err := unpack(b)
	if err != nil {
		r.fail()
		return nil
	}
	return plain
}

func (r *reader) blob() (b blob) {
	parts := r.uvarint()
	if parts == 0 {
		b.inline = r.packed()
		return b
	}
	if parts > maxParts {
		r.fail()
		return b
	}
	b.parts = int(parts)
	if ref := r.take(8); len(ref) == 8 {
		b.ref = mark(binary.BigEndian.Uint64(ref))
	}
	length := r.uvarint()
	if length > maxUnpacked {
		r.fail()
		return b
	}
	b.length = int(length)
	return b
}

func (r *reader) list() (list [][]byte) {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		list = append(list, r.packed())
	}
	return slices.Clip(list)
}
