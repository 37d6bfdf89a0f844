package jsonpatch

import "bytes"

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// trimSpace takes white space off both ends and returns how much was taken off the front.
func trimSpace(src []byte) ([]byte, int) {
	start, end := 0, len(src)
	for start < end && isSpace(src[start]) {
		start++
	}
	for start < end && isSpace(src[end-1]) {
		end--
	}
	return src[start:end], start
}

// compact returns src without white space outside strings. It does not validate; but where taking white space out
// would join two tokens, as in [1 2], it leaves one space, so that what is wrong stays wrong.
func compact(src []byte) []byte {
	out, _ := compactUntil(src, len(src)+1)
	return out
}

// offsetBefore returns where in src the byte stands that compact puts at offset.
func offsetBefore(src []byte, offset int) int {
	_, at := compactUntil(src, offset)
	return at
}

// compactUntil is compact up to where the byte at offset would come; it also returns that byte's place in src.
func compactUntil(src []byte, offset int) (out []byte, at int) {
	out = make([]byte, 0, len(src))
	from := 0
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			i = skipString(src, i)
		case isSpace(c):
			if len(out)+i-from > offset {
				return out, from + offset - len(out)
			}
			out = append(out, src[from:i]...)
			for i < len(src) && isSpace(src[i]) {
				i++
			}
			from = i
			if joins(out, src[i:]) {
				from--
			}
		default:
			i++
		}
	}
	if len(out)+len(src)-from > offset {
		return out, from + offset - len(out)
	}
	return append(out, src[from:]...), len(src)
}

// joins reports whether before and after would run into each other without a space.
func joins(before, after []byte) bool {
	if len(before) == 0 || len(after) == 0 {
		return false
	}
	return bytes.IndexByte([]byte("{[,:"), before[len(before)-1]) < 0 &&
		bytes.IndexByte([]byte("}],:"), after[0]) < 0
}

// skipString returns the position after the string that starts at pos, or the end of src if it does not end.
func skipString(src []byte, pos int) int {
	for pos++; pos < len(src); {
		pos, _ = scanPlain(src, pos)
		switch {
		case pos >= len(src):
			return len(src)
		case src[pos] == '"':
			return pos + 1
		case src[pos] == '\\':
			pos += 2
		default:
			pos++
		}
	}
	return len(src)
}
