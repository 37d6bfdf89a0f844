package settings

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// Units of a size. Only binary ones exist, so that nobody has to guess whether MB means 1000 or 1024.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

var sizeUnits = []struct {
	suffix string
	size   Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", Byte}}

// String is the shortest exact form: 4MiB, 1500B.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return "0B"
}

var errSize = errors.New("not a size")

// parseSize reads a whole number and a unit.
func parseSize(text string) (Size, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := parseInt(strings.TrimSpace(digits))
		if err != nil || n > math.MaxInt64/int64(u.size) {
			return 0, errSize
		}
		return Size(n) * u.size, nil
	}
	return 0, errSize
}

// parseInt reads decimal digits only: no sign, no exponent, no other base.
func parseInt(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}
