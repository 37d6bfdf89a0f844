package wire

// Limits of what is read here. Whatever is longer is left to net/http, which has limits of its own.
const (
	// MaxHead is how long the head of a request may be, in bytes.
	MaxHead = 8 << 10

	// MaxFields is how many header fields a request may have besides Host.
	MaxFields = 100

	// maxLengthDigits bounds a Content-Length.
	maxLengthDigits = 10

	// inputSize is how much of a connection is read at once. Most publications are shorter.
	inputSize = 16 << 10

	// sizedBody is how long a body may be, in bytes, that gets a Content-Length though its handler does not name one. It is net/http's number.
	sizedBody = 2 << 10

	// maxWrite is how much is collected for one write to a connection, in bytes.
	maxWrite = 64 << 10

	// maxResponseFields is how many header fields a short response may have.
	maxResponseFields = 32

	// maxGuardLine is more than net/http accepts of one line.
	maxGuardLine = 64 << 10
)

// Classes of characters. A character outside its class makes a request or response one for net/http, never an error.
const (
	inName    = 1 << iota // of a header field
	inValue               // of a header field, once its ends are trimmed
	inHost                // a host beyond doubt
	inTarget              // of a request
	inLiteral             // of a path in which every character means itself, however it is written
)

// classes of every byte.
var classes = func() (t [256]uint8) {
	for c := range t {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' && c < 0x80
		digit := '0' <= c && c <= '9'
		if letter || digit {
			t[c] |= inName | inHost | inLiteral
		}
		if c >= ' ' && c != 0x7f || c == '\t' {
			t[c] |= inValue
		}
		if c > ' ' && c < 0x7f {
			t[c] |= inTarget
		}
	}
	mark := func(characters string, class uint8) {
		for i := range len(characters) {
			t[characters[i]] |= class
		}
	}
	mark("-_", inName)
	mark(".-_:[]", inHost)
	mark("-_.~/", inLiteral)
	return t
}()

// isAll reports whether every byte of the text is in a class.
func isAll(text string, class uint8) bool {
	for i := range len(text) {
		if classes[text[i]]&class == 0 {
			return false
		}
	}
	return true
}

// parseDigits reads a number without a sign and without zeros before it.
func parseDigits(text string, most int) (n int64, ok bool) {
	if text == "" || len(text) > most || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int64(d)
	}
	return n, true
}

// IsHopByHop reports whether a header field speaks of one connection only.
func IsHopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
