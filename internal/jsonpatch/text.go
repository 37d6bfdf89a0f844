package jsonpatch

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Each of eight bytes in a word, for looking at eight bytes at once.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stringStop marks, by its high bit, the lowest byte of x that is a quote, a backslash or a control character.
// Higher marks may be wrong; the lowest one never is.
func stringStop(x uint64) uint64 {
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x) & highs
}

// scanPlain returns the position of the first quote, backslash or control character at or after pos, or
// len(text), and whether a byte outside ASCII may have been passed.
func scanPlain(text []byte, pos int) (int, bool) {
	var seen uint64
	for pos+8 <= len(text) {
		x := binary.LittleEndian.Uint64(text[pos:])
		if stop := stringStop(x); stop != 0 {
			n := bits.TrailingZeros64(stop) >> 3
			return pos + n, (seen|x&(1<<(8*n)-1))&highs != 0
		}
		seen |= x
		pos += 8
	}
	for ; pos < len(text); pos++ {
		c := text[pos]
		if c == '"' || c == '\\' || c < 0x20 {
			break
		}
		seen |= uint64(c)
	}
	return pos, seen&highs != 0
}

// escapeLen returns the length of the escape sequence at pos, or 0 if it is none.
func escapeLen(text []byte, pos int) int {
	if pos+1 >= len(text) {
		return 0
	}
	switch text[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if pos+6 <= len(text) && hexValue(text[pos+2:pos+6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hexDigit maps a byte to the value of the hexadecimal digit that it is, or to noDigit.
var hexDigit = func() (table [256]uint8) {
	for i := range table {
		table[i] = noDigit
	}
	for i, c := range []byte(hexDigits) {
		table[c] = uint8(i)
		if c >= 'a' {
			table[c-'a'+'A'] = uint8(i)
		}
	}
	return table
}()

const (
	hexDigits = "0123456789abcdef"
	noDigit   = 0xF0
)

// hexValue returns the value of four hexadecimal digits, or -1.
func hexValue(b []byte) rune {
	_ = b[3]
	x, y, z, w := hexDigit[b[0]], hexDigit[b[1]], hexDigit[b[2]], hexDigit[b[3]]
	if x|y|z|w >= noDigit {
		return -1
	}
	return rune(x)<<12 | rune(y)<<8 | rune(z)<<4 | rune(w)
}

// appendUnescaped appends what a valid string's content means. An escaped surrogate without a partner becomes the
// three bytes that its code point would have in UTF-8: no valid text contains them, so it equals nothing else.
func appendUnescaped(dst, raw []byte) []byte {
	n := len(dst)
	// Meaning is never longer than spelling; the rest is room for writing eight bytes at once.
	dst = slices.Grow(dst, len(raw)+8)[:n+len(raw)+8]
	for i := 0; i < len(raw); {
		if i+8 <= len(raw) {
			x := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(dst[n:], x)
			k := plainBytes(x)
			i, n = i+k, n+k
			if k == 8 {
				continue
			}
		} else if raw[i] != '\\' {
			dst[n] = raw[i]
			i, n = i+1, n+1
			continue
		}
		if raw[i+1] != 'u' {
			dst[n] = unescapedByte(raw[i+1])
			i, n = i+2, n+1
			continue
		}
		r, size := unescapedRune(raw[i:])
		i += size
		n = len(appendCodePoint(dst[:n], r))
	}
	return dst[:n]
}

// plainBytes returns how many bytes of x come before a backslash: 8 if there is none.
func plainBytes(x uint64) int {
	slash := x ^ ones*'\\'
	return bits.TrailingZeros64((slash-ones)&^slash&highs) >> 3
}

// unescapedRune reads the escape \uXXXX, or a pair of them, at the beginning of raw.
func unescapedRune(raw []byte) (r rune, size int) {
	r = hexValue(raw[2:6])
	if utf16.IsSurrogate(r) && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if pair := utf16.DecodeRune(r, hexValue(raw[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

func unescapedByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func appendCodePoint(dst []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(dst, r)
}

// appendEscaped appends unescaped text, as appendUnescaped makes it, in the form it has inside a JSON string.
func appendEscaped(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c == 0xED && i+2 < len(text) && text[i+1] >= 0xA0:
			r := rune(c&15)<<12 | rune(text[i+1]&0x3F)<<6 | rune(text[i+2]&0x3F)
			dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			i += 2
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// invalidUTF8 returns the offset of the first byte that is not part of valid UTF-8, or -1.
func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
