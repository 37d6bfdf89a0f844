// Package sse makes the bytes of a Server-Sent Events stream, frames and their compressed form, and reads them back.
//
// A frame is what one event, comment or heartbeat takes on the wire. Frames are byte slices, so that one can be
// shared by every subscriber; the package never keeps or changes what it is given. It does not decide what is sent,
// to whom or when. Everything but a Reader is a pure function and safe for concurrent use.
package sse

import (
	"bytes"
	"strconv"
	"time"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// Heartbeat is the comment that keeps an idle stream alive. Public clients expect text behind the colon and an
// empty line after it.
const Heartbeat = ":heartbeat\n\n"

// Event is one event. Its zero fields are left out, except Data, which every event has.
type Event struct {
	Retry time.Duration // how long a client shall wait before it reconnects
	ID    string
	Name  string
	Data  []byte // one JSON value
}

// AppendEvent appends the frame of e to dst: LF only, exactly one data line, exactly one empty line at the end,
// because the parsers of public clients understand nothing else. Line breaks cannot be part of a JSON value except
// as white space between tokens, so they are dropped from Data; in ID and Name, which are ours, they would let one
// field forge another, so there they end the text.
//
// The id comes last. Some public clients take an id for seen as soon as they have read its line; if a connection broke
// within the data behind it, they would resume past an event they never had, and apply patches to the wrong document.
func AppendEvent(dst []byte, e Event) []byte {
	if e.Retry > 0 {
		dst = append(dst, "retry: "...)
		dst = strconv.AppendInt(dst, e.Retry.Milliseconds(), 10)
		dst = append(dst, '\n')
	}
	if e.Name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, firstLine(e.Name)...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	dst = appendOneLine(dst, e.Data)
	dst = append(dst, '\n')
	if e.ID != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, firstLine(e.ID)...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// EventSize is an upper bound of the length of e's frame.
func EventSize(e Event) int {
	return len("retry: \nid: \nevent: \ndata: \n\n") + 20 + len(e.ID) + len(e.Name) + len(e.Data)
}

// FrameLen is the length of the frame of an event whose id, name and data, which is one line, have these lengths.
func FrameLen(id, name, data int) int { return len("id: \nevent: \ndata: \n\n") + id + name + data }

// AppendComment appends a comment of n filler bytes, which no client shows: some proxies and old browsers hold the
// beginning of a stream back until they have seen enough of it.
func AppendComment(dst []byte, n int) []byte {
	dst = append(dst, ':')
	for range n {
		dst = append(dst, ' ')
	}
	return append(dst, '\n', '\n')
}

// AppendRetry appends a block that only tells the client how long to wait before it reconnects.
func AppendRetry(dst []byte, wait time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, wait.Milliseconds(), 10)
	return append(dst, '\n', '\n')
}

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' || s[i] == 0 {
			return s[:i]
		}
	}
	return s
}

func appendOneLine(dst, data []byte) []byte {
	// The usual case is decided at the speed of memchr.
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return append(dst, data...)
	}
	for _, c := range data {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}
