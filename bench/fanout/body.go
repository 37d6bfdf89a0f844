package main

import "bytes"

// body takes an HTTP/1.1 answer apart as it arrives: first the header, then, if need be, the chunks. It keeps no bytes of the body and
// only the few of the header that decide how the body is framed.
type body struct {
	phase   phase
	chunked bool
	gzip    bool
	matched uint8  // how much of the blank line, or of a header word, has been seen
	status  uint16 // of the answer
	line    []byte // the header so far; given back when it is complete
	left    int64  // of the chunk
}

type phase uint8

const (
	inHeader phase = iota
	inBody
	inSize // of a chunk
	afterSize
	inChunk
	afterChunk
	ended
	broken
)

const maxHeader = 8 << 10

// feed consumes b and calls take for every run of body bytes in it.
func (p *body) feed(b []byte, take func([]byte)) {
	for len(b) > 0 {
		switch p.phase {
		case inHeader:
			b = p.header(b)
		case inBody:
			take(b)
			return
		case inSize:
			b = p.size(b)
		case afterSize: // extensions, which nobody reads, up to the line break
			b = p.skipLine(b, inChunk)
			if p.phase == inChunk && p.left == 0 {
				p.phase = ended
			}
		case inChunk:
			n := min(int64(len(b)), p.left)
			take(b[:n])
			b = b[n:]
			if p.left -= n; p.left == 0 {
				p.phase = afterChunk
			}
		case afterChunk:
			b = p.skipLine(b, inSize)
		default:
			return
		}
	}
}

func (p *body) skipLine(b []byte, next phase) []byte {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil
	}
	p.phase = next
	return b[i+1:]
}

func (p *body) size(b []byte) []byte {
	for i, c := range b {
		v, ok := parseHex([]byte{c | 0x20})
		if !ok {
			p.phase = afterSize
			return b[i:]
		}
		p.left = p.left<<4 | int64(v)
		if p.left > 1<<40 {
			p.phase = broken
			return nil
		}
	}
	return nil
}

func (p *body) header(b []byte) []byte {
	seen := len(p.line)
	p.line = append(p.line, b...)
	end := bytes.Index(p.line, []byte("\r\n\r\n"))
	if end < 0 {
		if len(p.line) > maxHeader {
			p.phase = broken
		}
		return nil
	}
	p.readHeader(bytes.ToLower(p.line[:end+2]))
	rest := b[end+4-seen:]
	p.line = nil
	return rest
}

func (p *body) readHeader(h []byte) {
	p.phase = broken
	if len(h) > 12 && bytes.HasPrefix(h, []byte("http/1.")) {
		for _, c := range h[9:12] {
			p.status = p.status*10 + uint16(c-'0')
		}
		p.phase = inBody
	}
	p.gzip = bytes.Contains(h, []byte("\r\ncontent-encoding: gzip\r\n"))
	if p.chunked = bytes.Contains(h, []byte("\r\ntransfer-encoding: chunked\r\n")); p.chunked && p.phase == inBody {
		p.phase = inSize
	}
}
