package sse

import (
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"

	"github.com/klauspost/compress/flate"
)

// Encoding is a content coding of a stream.
type Encoding uint8

// The content codings of a stream. Gzip and Deflate differ only in the first bytes of a stream: behind its header
// both carry the same segments, so that a frame is compressed once for both.
const (
	Identity Encoding = iota
	Gzip
	Deflate
)

// String is the name of the coding in a Content-Encoding header; Identity has none.
func (e Encoding) String() string {
	switch e {
	case Gzip:
		return "gzip"
	case Deflate:
		return "deflate"
	}
	return ""
}

const (
	gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // deflate, no name, no time, unknown system
	zlibHeader = "\x78\x01"                                 // 32 KiB window, fastest
)

// StreamHeader is what a stream in this coding begins with, once per connection.
func (e Encoding) StreamHeader() string {
	switch e {
	case Gzip:
		return gzipHeader
	case Deflate:
		return zlibHeader
	}
	return ""
}

// AppendSegment appends the compressed form of a frame. It refers to nothing before it and ends on a byte boundary,
// so segments can follow each other in any order on any stream, and each can be decoded when it arrives.
// The price of sharing is that a stream has no checksum at its end; nobody waits for the end of such a stream.
func AppendSegment(dst, frame []byte) []byte {
	if len(frame) == 0 {
		return dst
	}
	w := sliceWriter{dst}
	_ = flate.StatelessDeflate(&w, frame, false, nil) // a sliceWriter cannot fail
	return w.buf
}

// AppendWhole appends a complete compressed body, with header and checksum, for streams that are known from beginning
// to end.
func (e Encoding) AppendWhole(dst, body []byte) []byte {
	if e == Identity {
		return append(dst, body...)
	}
	dst = append(dst, e.StreamHeader()...)
	w := sliceWriter{dst}
	_ = flate.StatelessDeflate(&w, body, true, nil)
	if e == Deflate {
		return binary.BigEndian.AppendUint32(w.buf, adler32.Checksum(body))
	}
	dst = binary.LittleEndian.AppendUint32(w.buf, crc32.ChecksumIEEE(body))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
}

type sliceWriter struct{ buf []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}
