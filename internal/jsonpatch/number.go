package jsonpatch

import (
	"bytes"
	"strconv"
)

// smallNumber is a number that fits machine words: ± mantissa × 10^exponent, the mantissa without trailing zeros.
type smallNumber struct {
	mantissa uint64
	exponent int64
	negative uint64 // 0 or 1
	fits     bool   // if not, the other fields mean nothing
}

const (
	mantissaDigits = 19 // what fits 64 bits
	exponentDigits = 9
)

// scanNumber returns the end of the number at pos, and the number if it is small. If the text there is no number, ok is false
// and end is the position of the byte that does not fit.
func scanNumber(text []byte, pos int) (end int, n smallNumber, ok bool) {
	if text[pos] == '-' {
		n.negative = 1
		pos++
	}
	first := pos
	for pos < len(text) && text[pos]-'0' <= 9 {
		n.mantissa = n.mantissa*10 + uint64(text[pos]-'0')
		pos++
	}
	digits := pos - first
	if digits == 0 {
		return pos, n, false
	}
	if text[first] == '0' && digits > 1 {
		return first + 1, n, false
	}
	if pos < len(text) && text[pos] == '.' {
		pos++
		first = pos
		for pos < len(text) && text[pos]-'0' <= 9 {
			n.mantissa = n.mantissa*10 + uint64(text[pos]-'0')
			pos++
		}
		if pos == first {
			return pos, n, false
		}
		digits += pos - first
		n.exponent = int64(first - pos)
	}
	n.fits = digits <= mantissaDigits
	if pos < len(text) && text[pos]|0x20 == 'e' {
		var exponent int64
		if pos, exponent, ok = scanExponent(text, pos+1); !ok {
			return pos, n, false
		}
		n.exponent += exponent
		n.fits = n.fits && exponent < overlong
	}
	n.normalize()
	return pos, n, true
}

// overlong is what scanExponent returns for an exponent of too many digits.
const overlong = 1 << 40

// scanExponent returns the end and the value of the exponent whose sign or first digit is at pos.
func scanExponent(text []byte, pos int) (end int, value int64, ok bool) {
	negative := pos < len(text) && text[pos] == '-'
	if pos < len(text) && (text[pos] == '+' || text[pos] == '-') {
		pos++
	}
	first := pos
	for ; pos < len(text) && text[pos]-'0' <= 9; pos++ {
		if pos-first < exponentDigits {
			value = value*10 + int64(text[pos]-'0')
		}
	}
	if pos-first > exponentDigits {
		return pos, overlong, true
	}
	if negative {
		value = -value
	}
	return pos, value, pos > first
}

// normalize takes trailing zeros off the mantissa, and everything off zero.
func (n *smallNumber) normalize() {
	if n.mantissa == 0 {
		n.exponent, n.negative = 0, 0
		return
	}
	for n.mantissa%10 == 0 {
		n.mantissa /= 10
		n.exponent++
	}
}

// hashNumber hashes a valid number, which is also given as a smallNumber if it is one, by its value.
func hashNumber(text []byte, n smallNumber) uint64 {
	if n.fits {
		return hashDecimal(n.mantissa, n.exponent, n.negative)
	}
	var buf [decimalRoom]byte
	d := parseDecimal(text, buf[:0])
	if len(d.digits) > mantissaDigits || len(d.exponent) > 18 {
		return hashLong(d)
	}
	// It is small but for zeros, or for an exponent that other spellings of it do not have.
	n = smallNumber{}
	n.mantissa, _ = strconv.ParseUint(string(d.digits), 10, 64)
	n.exponent, _ = strconv.ParseInt(string(d.exponent), 10, 64)
	if d.negative {
		n.negative = 1
	}
	return hashDecimal(n.mantissa, n.exponent, n.negative)
}

// hashLong hashes a number that is not small in any spelling.
func hashLong(d decimal) uint64 {
	h := fold(hashText(d.digits), hashText(d.exponent)^seedNumber)
	if d.negative {
		return ^h
	}
	return h
}

// equalNumbers compares two valid numbers by exact value, in time linear in their text.
func equalNumbers(a, b []byte) bool {
	_, m, _ := scanNumber(a, 0)
	_, n, _ := scanNumber(b, 0)
	if m.fits && n.fits {
		return m == n
	}
	var bufA, bufB [decimalRoom]byte
	x, y := parseDecimal(a, bufA[:0]), parseDecimal(b, bufB[:0])
	return x.negative == y.negative && bytes.Equal(x.digits, y.digits) && bytes.Equal(x.exponent, y.exponent)
}

// A decimal is a number in its only canonical form: ± digits × 10^exponent, the digits an integer without
// leading or trailing zeros. The exponent is decimal text, because the grammar does not bound it. Zero is "0" × 10^0.
type decimal struct {
	negative         bool
	digits, exponent []byte
}

// decimalRoom is what most numbers need when they are taken apart.
const decimalRoom = 160

// parseDecimal takes a valid number apart. It uses the room behind buf for the parts.
func parseDecimal(text, buf []byte) decimal {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	mantissa, exponent := text, []byte(nil)
	if i := indexExponent(text); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	digits, shift := append(buf, mantissa...), 0
	if i := bytes.IndexByte(mantissa, '.'); i >= 0 {
		digits = append(append(buf, mantissa[:i]...), mantissa[i+1:]...)
		shift = i + 1 - len(mantissa)
	}
	room := digits[len(digits):]
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		shift++
	}
	if len(digits) == 0 {
		return decimal{digits: []byte("0"), exponent: []byte("0")}
	}
	return decimal{negative, digits, addToDecimal(room, exponent, int64(shift))}
}

// indexExponent returns where the exponent of a number begins, or -1.
func indexExponent(text []byte) int {
	if i := bytes.IndexByte(text, 'e'); i >= 0 {
		return i
	}
	return bytes.IndexByte(text, 'E')
}

// appendTo appends the canonical text with an exponent.
func (d decimal) appendTo(dst []byte) []byte {
	if d.negative {
		dst = append(dst, '-')
	}
	dst = append(dst, d.digits...)
	dst = append(dst, 'e')
	return append(dst, d.exponent...)
}

// addToDecimal appends, as decimal text, the sum of n and an integer given as decimal text with an optional sign; "" is
// zero.
func addToDecimal(dst, text []byte, n int64) []byte {
	negative := len(text) > 0 && text[0] == '-'
	text = bytes.TrimLeft(text, "+-")
	text = bytes.TrimLeft(text, "0")
	if negative {
		n = -n
	}
	// From here on the integer is positive, and the sum's sign is to be turned if it was not.
	if len(text) > 17 {
		if negative {
			dst = append(dst, '-')
		}
		return append(dst, addDigits(text, n)...) // |n| has fewer digits than text, so the sum is positive
	}
	var value int64
	for _, c := range text {
		value = value*10 + int64(c-'0')
	}
	n += value
	if negative {
		n = -n
	}
	return strconv.AppendInt(dst, n, 10)
}

// addDigits adds n to a positive integer that is greater than |n|, given as decimal digits.
func addDigits(digits []byte, n int64) []byte {
	sum := make([]byte, len(digits)+1)
	copy(sum[1:], digits)
	sum[0] = '0'
	for i := len(sum) - 1; i >= 0 && n != 0; i-- {
		v := int64(sum[i]-'0') + n
		n = v / 10
		if v%10 < 0 {
			n--
		}
		sum[i] = byte('0' + v - n*10)
	}
	return bytes.TrimLeft(sum, "0")
}

// plainZeros is how many zeros decimalText writes before it prefers an exponent.
const plainZeros = 64

// decimalText returns the canonical text of a valid number, without an exponent where that is reasonable.
func decimalText(text []byte) string {
	d := parseDecimal(text, nil)
	exponent, err := strconv.Atoi(string(d.exponent))
	if err != nil || exponent > plainZeros || exponent < -plainZeros-len(d.digits) {
		return string(d.appendTo(nil))
	}
	var out []byte
	if d.negative {
		out = append(out, '-')
	}
	switch point := len(d.digits) + exponent; {
	case exponent >= 0:
		out = append(out, d.digits...)
		out = append(out, bytes.Repeat([]byte{'0'}, exponent)...)
	case point > 0:
		out = append(out, d.digits[:point]...)
		out = append(out, '.')
		out = append(out, d.digits[point:]...)
	default:
		out = append(out, "0."...)
		out = append(out, bytes.Repeat([]byte{'0'}, -point)...)
		out = append(out, d.digits...)
	}
	return string(out)
}
