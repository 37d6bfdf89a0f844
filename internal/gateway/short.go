package gateway

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// Most answers of most APIs are short and simple: a header that arrives in one piece, with nothing in it that concerns the
// connection, and a body that fits behind it into the buffer. Such an answer is taken as it lies there. Whatever is not
// exactly that is left to the library, untouched: this reads no HTTP that two readers could understand differently.

// maxShortFields is more than such answers have.
const maxShortFields = 32

type shortField struct{ name, value string }

// short is such an answer, as it lies in the buffer of its connection.
type short struct {
	status  int
	fields  []shortField
	headLen int
	length  int // of the body
}

// peekShort looks whether such an answer is there. The fields need room.
func (c *straightConn) peekShort(room *[maxShortFields]shortField) (s short, ok bool) {
	here, _ := c.in.Peek(c.in.Buffered()) // that much is there
	end := bytes.Index(here, []byte("\r\n\r\n"))
	if end < 0 {
		return s, false
	}
	s.headLen = end + 4
	status, text, ok := shortStatus(string(here[:end+2]))
	if !ok {
		return s, false
	}
	s.status = status
	s.fields, s.length, ok = shortFields(room[:0], text)
	return s, ok && s.length <= len(here)-s.headLen
}

// shortAnswer moves the header of such an answer to another one, and returns the status and the length of the body. If it
// is anything else, nothing was read.
func (c *straightConn) shortAnswer(to http.Header) (status, length int, ok bool) {
	var room [maxShortFields]shortField
	s, ok := c.peekShort(&room)
	if !ok {
		return 0, 0, false
	}
	values := make([]string, len(s.fields)) // one allocation for all
	for i, f := range s.fields {
		values[i] = f.value
		if before := to[f.name]; len(before) > 0 {
			to[f.name] = append(before, f.value)
		} else {
			to[f.name] = values[i : i+1 : i+1]
		}
	}
	_, _ = c.in.Discard(s.headLen)
	return s.status, s.length, true
}

// shortStatus reads a status line whose answer has a body, as far as the status alone says.
func shortStatus(text string) (status int, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "HTTP/1.1 ")
	if !ok || len(text) < 3 {
		return 0, "", false
	}
	status, ok = digits(text[:3])
	line, rest, _ := strings.Cut(text[3:], "\r\n")
	if line != "" && line[0] != ' ' || !isText(line) || status < http.StatusOK || status == http.StatusNoContent || status == http.StatusNotModified {
		return 0, "", false
	}
	return status, rest, ok
}

// shortFields reads the lines of a header that has a length and nothing about the connection but that it stays.
func shortFields(fields []shortField, text string) (_ []shortField, length int, ok bool) {
	length = -1
	for text != "" {
		name, value, rest, ok := shortLine(text)
		if !ok || len(fields) == maxShortFields {
			return nil, 0, false
		}
		text = rest
		switch name {
		case "Content-Length":
			if length >= 0 {
				return nil, 0, false
			}
			if length, ok = digits(value); !ok {
				return nil, 0, false
			}
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return nil, 0, false
			}
			continue
		case "Keep-Alive":
			continue
		case "Pragma":
			return nil, 0, false // the library has its own idea of it
		default:
			if isHopByHop(name) {
				return nil, 0, false
			}
		}
		fields = append(fields, shortField{name, value})
	}
	return fields, length, length >= 0
}

// shortLine cuts a line of a header in two.
func shortLine(text string) (name, value, rest string, ok bool) {
	colon, canonical := 0, true
	for upper := true; colon < len(text) && text[colon] != ':'; colon++ {
		switch c := text[colon]; {
		case c >= 'a' && c <= 'z':
			canonical = canonical && !upper
		case c >= 'A' && c <= 'Z':
			canonical = canonical && upper
		case c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return "", "", "", false
		}
		upper = text[colon] == '-'
	}
	end := strings.IndexByte(text, '\n')
	if colon == 0 || end <= colon+1 || text[end-1] != '\r' {
		return "", "", "", false
	}
	name, value = text[:colon], strings.Trim(text[colon+1:end-1], " \t")
	if !canonical {
		name = textproto.CanonicalMIMEHeaderKey(name)
	}
	return name, value, text[end+1:], isText(value)
}

// digits reads a number that fits into a buffer.
func digits(text string) (n int, ok bool) {
	if text == "" || len(text) > 6 {
		return 0, false
	}
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int(d)
	}
	return n, true
}

func isText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// passShort writes the body that lies in the buffer.
func (c *straightConn) passShort(w http.ResponseWriter, length int) {
	body, _ := c.in.Peek(length)
	_, err := w.Write(body)
	_, _ = c.in.Discard(length)
	if err != nil && length > 0 {
		panic(http.ErrAbortHandler) // the client has gone
	}
}
