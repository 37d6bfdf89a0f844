package jsonpatch

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Hashes are seeded per process, so that nobody can prepare documents whose hashes collide. They never leave
// the process and never decide anything alone, so results do not depend on the seed.
var (
	seedText   = rand.Uint64()
	seedNumber = rand.Uint64()
	seedMember = rand.Uint64()
	seedArray  = rand.Uint64()
	seedObject = rand.Uint64()
	literals   = [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()} // null, false, true
)

// Odd constants with bits in no pattern.
const (
	mulA = 0xa0761d6478bd642f
	mulB = 0xe7037ed1a0b428db
	mulC = 0x8ebc6af09c88c6e3
)

// fold multiplies and keeps both halves, so that every input bit reaches every output bit.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hashText hashes bytes, eight or sixteen at a time. Reads at the end may overlap what is hashed already.
func hashText(b []byte) uint64 {
	var x, y uint64
	n, h := len(b), seedText
	switch {
	case n > 16:
		for rest := b; len(rest) > 16; rest = rest[16:] {
			h = fold(binary.LittleEndian.Uint64(rest)^h, binary.LittleEndian.Uint64(rest[8:])^mulB)
		}
		x, y = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1])
	}
	return fold(x^h^mulA, y^uint64(n)^mulB)
}

// hashDecimal hashes a number that is mantissa × 10^exponent, the mantissa without trailing zeros.
func hashDecimal(mantissa uint64, exponent int64, negative uint64) uint64 {
	return fold(mantissa^seedNumber, uint64(exponent)<<1^negative^mulC)
}

// hashMember joins the hashes of a key and its value.
func hashMember(key, value uint64) uint64 {
	return fold(key^seedMember, bits.RotateLeft64(value, 32)^mulB)
}

// Containers are hashed child by child: an array's hash depends on the order, an object's does not.

func addElement(sum uint64, child uint32) uint64 { return (sum ^ uint64(child)) * mulC }
func addMember(sum uint64, member uint32) uint64 { return sum + uint64(member) }

// truncate returns the part of a hash that nodes keep. Half is enough, since it is never trusted, and tapes are kept for long.
func truncate(hash uint64) uint32 { return uint32(hash >> 32) }

func hashContainer(kind Kind, sum uint64, children uint32) uint64 {
	seed := seedArray
	if kind == Object {
		seed = seedObject
	}
	return fold(sum^seed, uint64(children)^mulA)
}

// rehash computes the hash of a document's root as if it had no key.
func rehash(d *Document) uint32 {
	root := d.node(place{})
	switch root.kind() {
	case Array, Object:
		return truncate(rehashContainer(d, root))
	case String:
		return truncate(hashString(d.text[1:len(d.text)-1], root.escaped()))
	case Number:
		_, n, _ := scanNumber(d.text, 0)
		return truncate(hashNumber(d.text, n))
	default:
		return truncate(literals[literalIndex(d.text)])
	}
}

func rehashContainer(d *Document, root *node) uint64 {
	var sum uint64
	for at := uint32(1); at < root.span; at += d.tape[at].span {
		if root.kind() == Object {
			sum = addMember(sum, d.tape[at].hash)
		} else {
			sum = addElement(sum, d.tape[at].hash)
		}
	}
	return hashContainer(root.kind(), sum, uint32(root.children()))
}

// literalIndex tells null, false and true apart by their first byte.
func literalIndex(text []byte) int {
	switch text[0] {
	case 'n':
		return 0
	case 'f':
		return 1
	default:
		return 2
	}
}

// hashString hashes the content of a string, given without quotes, by its meaning.
func hashString(raw []byte, escaped bool) uint64 {
	if !escaped {
		return hashText(raw)
	}
	buf := textBuffers.Get().(*[]byte)
	*buf = appendUnescaped((*buf)[:0], raw)
	hash := hashText(*buf)
	textBuffers.Put(buf)
	return hash
}
