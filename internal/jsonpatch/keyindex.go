package jsonpatch

import "math/bits"

// A keyIndex finds members by the hash of their key: an open-addressing table of places. It exists because wide
// objects in another order must not cost the product of their widths.
type keyIndex struct {
	slots []keySlot
	shift uint
}

// A keySlot holds half of a hash. That is enough, since a match is always confirmed, and wide objects need many slots.
type keySlot struct {
	hash uint32
	at   place // the zero place if the slot is free: no member stands there
}

// tableLen returns how many slots a table has for n hashes, at most half full.
func tableLen(n int) int { return 1 << bits.Len(uint(n)*2) }

// newKeyIndex returns an index with room for n keys.
func newKeyIndex(n int) *keyIndex {
	x := new(keyIndex)
	x.reset(n)
	return x
}

// reset empties the index and makes room for n keys, at most half full.
func (x *keyIndex) reset(n int) {
	size := tableLen(n)
	if cap(x.slots) < size {
		x.slots = make([]keySlot, size)
	} else {
		x.slots = x.slots[:size]
		clear(x.slots)
	}
	x.shift = uint(64 - bits.Len(uint(size-1)))
}

// add puts a place, which must not be the zero one, under a hash; there may be several.
func (x *keyIndex) add(hash uint64, p place) {
	i := hash >> x.shift
	for x.slots[i].at != (place{}) {
		i = (i + 1) & uint64(len(x.slots)-1)
	}
	x.slots[i] = keySlot{truncate(hash), p}
}

// find returns the place under this hash that match confirms.
func (x *keyIndex) find(hash uint64, match func(place) bool) (place, bool) {
	for i := hash >> x.shift; x.slots[i].at != (place{}); i = (i + 1) & uint64(len(x.slots)-1) {
		if x.slots[i].hash == truncate(hash) && match(x.slots[i].at) {
			return x.slots[i].at, true
		}
	}
	return place{}, false
}

// A classTable numbers hashes, from 1.
type classTable struct {
	slots []classSlot
	shift uint
	last  int32
}

type classSlot struct {
	hash  uint32
	class int32 // 0 if the slot is free
}

// reset empties the table and makes room for n hashes, at most half full.
func (t *classTable) reset(n int) {
	size := tableLen(n)
	if cap(t.slots) < size {
		t.slots = make([]classSlot, size)
	} else {
		t.slots = t.slots[:size]
		clear(t.slots)
	}
	t.shift, t.last = uint(64-bits.Len(uint(size-1))), 0
}

// intern returns the number of a hash, giving it one if it has none.
func (t *classTable) intern(hash uint32) int32 {
	slot := t.slot(hash)
	if slot.class == 0 {
		t.last++
		*slot = classSlot{hash, t.last}
	}
	return slot.class
}

// lookup returns the number of a hash, or 0.
func (t *classTable) lookup(hash uint32) int32 { return t.slot(hash).class }

func (t *classTable) slot(hash uint32) *classSlot {
	i := uint64(hash) * mulA >> t.shift
	for t.slots[i].class != 0 && t.slots[i].hash != hash {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	return &t.slots[i]
}
