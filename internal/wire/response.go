package wire

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// Response is a short response of an upstream as it lies in the buffer of its connection: a head that arrived in one piece, with nothing in it that
// concerns the connection but that it stays, and a body of known length that fits behind it. Most responses of most APIs are like that. Whatever is not
// exactly that is left to net/http, untouched.
type Response struct {
	Status int
	Fields []Field // without those of the connection
	Body   []byte  // in the buffer; good until Discard

	room [maxResponseFields]Field // of Fields
}

// Field is one header field.
type Field struct{ Name, Value string }

// Has reports whether there is a field with the name, written in the usual way.
func (r *Response) Has(name string) bool {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return true
		}
	}
	return false
}

// Parse understands the response at the beginning of what an upstream sent, and returns its length; 0 if it is anything but short.
func (r *Response) Parse(sent []byte) int {
	end := bytes.Index(sent, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	headLen := end + 4
	fields, ok := r.parseStatus(string(sent[:end+2]))
	if !ok {
		return 0
	}
	length, ok := r.parseFields(fields)
	if !ok || length > int64(len(sent)-headLen) {
		return 0
	}
	r.Body = sent[headLen : headLen+int(length)]
	return headLen + int(length)
}

// parseStatus reads the status line of a response that has a body, as far as the status alone says, and returns the lines behind it.
func (r *Response) parseStatus(text string) (fields string, ok bool) {
	text, ok = strings.CutPrefix(text, "HTTP/1.1 ")
	if !ok || len(text) < 3 {
		return "", false
	}
	status, ok := parseDigits(text[:3], 3)
	reason, fields, _ := strings.Cut(text[3:], "\r\n")
	r.Status = int(status)
	if reason != "" && reason[0] != ' ' || !isAll(reason, inValue) || r.Status < http.StatusOK || r.Status == http.StatusNoContent || r.Status == http.StatusNotModified {
		return "", false
	}
	return fields, ok
}

// parseFields reads the lines of a header that has a length and nothing about the connection but that it stays.
func (r *Response) parseFields(lines string) (length int64, ok bool) {
	r.Fields, length = r.room[:0], -1
	for lines != "" {
		f, rest, ok := parseField(lines)
		if !ok || len(r.Fields) == len(r.room) {
			return 0, false
		}
		lines = rest
		switch f.Name {
		case "Content-Length":
			if length >= 0 {
				return 0, false
			}
			if length, ok = parseDigits(f.Value, maxLengthDigits); !ok {
				return 0, false
			}
		case "Connection":
			if !strings.EqualFold(f.Value, "keep-alive") {
				return 0, false
			}
			continue
		case "Keep-Alive":
			continue
		case "Pragma":
			return 0, false // net/http has its own idea of it
		default:
			if IsHopByHop(f.Name) {
				return 0, false
			}
		}
		r.Fields = append(r.Fields, f)
	}
	return length, length >= 0
}

// parseField cuts the first of the lines in two. The name is written in the usual way.
func parseField(lines string) (f Field, rest string, ok bool) {
	colon, isUsual := 0, true
	for first := true; colon < len(lines) && lines[colon] != ':'; colon++ {
		c := lines[colon]
		if classes[c]&inName == 0 {
			return f, "", false
		}
		isLower, isUpper := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
		isUsual = isUsual && !(isLower && first || isUpper && !first)
		first = c == '-'
	}
	end := strings.IndexByte(lines, '\n')
	if colon == 0 || end <= colon+1 || lines[end-1] != '\r' {
		return f, "", false
	}
	f = Field{lines[:colon], strings.Trim(lines[colon+1:end-1], " \t")}
	if !isUsual {
		f.Name = textproto.CanonicalMIMEHeaderKey(f.Name)
	}
	return f, lines[end+1:], isAll(f.Value, inValue)
}
