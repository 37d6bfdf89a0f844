package content

import (
	"hash/maphash"
	"slices"
)

// An index finds the serial of an item by its identifier. It is a table of small maps; a state that adds or removes an
// identifier copies the map that it is in, and shares the others.
type index struct {
	shards []map[string]uint64 // a power of two of them, or none
	count  int
}

// shardLen is how many identifiers a map holds on average before their number is doubled.
const shardLen = 32

var indexSeed = maphash.MakeSeed()

func (x index) shard(id string) int {
	return int(maphash.String(indexSeed, id) & uint64(len(x.shards)-1))
}

func (x index) find(id string) (uint64, bool) {
	if len(x.shards) == 0 {
		return 0, false
	}
	serial, ok := x.shards[x.shard(id)][id]
	return serial, ok
}

// An indexEdit is an index being changed.
type indexEdit struct {
	index
	own []bool // which maps are copies that nobody else has; nil while nothing was written
}

func (x index) edit() indexEdit { return indexEdit{index: x} }

func (e *indexEdit) done() index { return e.index }

// writable returns the map for an identifier, to be changed.
func (e *indexEdit) writable(id string) map[string]uint64 {
	if e.own == nil {
		e.shards = slices.Clone(e.shards)
		e.own = make([]bool, len(e.shards))
	}
	k := e.shard(id)
	if !e.own[k] {
		m := make(map[string]uint64, len(e.shards[k])+1)
		for id, serial := range e.shards[k] {
			m[id] = serial
		}
		e.shards[k], e.own[k] = m, true
	}
	return e.shards[k]
}

// set adds an identifier that is not there yet.
func (e *indexEdit) set(id string, serial uint64) {
	if e.count >= len(e.shards)*shardLen {
		e.grow()
	}
	e.writable(id)[id] = serial
	e.count++
}

func (e *indexEdit) delete(id string) {
	delete(e.writable(id), id)
	e.count--
}

// grow doubles the number of maps.
func (e *indexEdit) grow() {
	old := e.shards
	e.shards = make([]map[string]uint64, max(1, 2*len(old)))
	e.own = make([]bool, len(e.shards))
	for k := range e.shards {
		e.shards[k], e.own[k] = make(map[string]uint64, shardLen), true
	}
	for _, m := range old {
		for id, serial := range m {
			e.shards[e.shard(id)][id] = serial
		}
	}
}
