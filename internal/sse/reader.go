package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// ErrTooLong means that an event is larger than its reader was told to expect.
var ErrTooLong = errors.New("an event is larger than the limit")

const readBuffer = 32 << 10 // bytes; larger events are put together from several reads

// A Reader takes a stream apart again. It reads what servers send today: lines end with LF or CRLF, and a lone CR is
// part of its line. It is not safe for concurrent use.
type Reader struct {
	src     *bufio.Reader
	limit   int    // bytes of one line, and of the data of one event
	line    []byte // reused for lines longer than the buffer
	started bool   // the byte order mark, if there was one, is behind us
}

// NewReader returns a reader of events of at most limit bytes.
func NewReader(src io.Reader, limit int) *Reader {
	return &Reader{src: bufio.NewReaderSize(src, readBuffer), limit: limit}
}

// Next returns the next block that says anything: an event, or only a Retry or an ID. Data is nil unless the block had a data
// line; it is the caller's to keep. Comments are passed over. A block that the stream's end cuts off is not an event.
func (r *Reader) Next() (Event, error) {
	var e Event
	said := false
	for {
		line, err := r.next()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if said {
				return e, nil
			}
			continue
		}
		if line[0] == ':' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		known, err := r.field(&e, string(name), value)
		if err != nil {
			return Event{}, err
		}
		said = said || known
	}
}

// field puts one field into the event and reports whether it was one that counts.
func (r *Reader) field(e *Event, name string, value []byte) (bool, error) {
	switch name {
	case "data":
		if len(e.Data)+len(value) > r.limit {
			return false, ErrTooLong
		}
		if e.Data != nil {
			e.Data = append(e.Data, '\n')
		} else {
			e.Data = make([]byte, 0, len(value))
		}
		e.Data = append(e.Data, value...)
	case "event":
		e.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return false, nil
		}
		e.ID = string(value)
	case "retry":
		ms, err := strconv.ParseUint(string(value), 10, 31)
		if err == nil { // what is no number is to be ignored
			e.Retry = time.Duration(ms) * time.Millisecond
		}
		return err == nil, nil
	default:
		return false, nil
	}
	return true, nil
}

// next returns a line without its end. It is valid until the next call.
func (r *Reader) next() ([]byte, error) {
	line, err := r.src.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.line = append(r.line[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(r.line) > r.limit+len("data: \r\n") {
				return nil, ErrTooLong
			}
			line, err = r.src.ReadSlice('\n')
			r.line = append(r.line, line...)
		}
		line = r.line
	}
	if err != nil {
		return nil, err
	}
	line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
	if !r.started {
		r.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}
