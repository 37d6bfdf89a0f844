package content

import "github.com/freshet-io/freshet/internal/jsonpatch"

// put makes an item exactly this version. An equal one only becomes newer; it keeps its document, so that it shows as
// unchanged.
func (e *edit) put(id string, v jsonpatch.Value, seen int64) {
	serial, ok := e.index.find(id)
	if !ok {
		e.append(entry{id: id, doc: v.Document(), seen: seen})
		return
	}
	// Identifiers in one batch are distinct, so this one is in the base state, in the same chunk.
	k := e.base.vector.locate(serial)
	at := e.chunks[k].within(serial)
	old := &e.chunks[k].entries[at]
	if !e.renewed || old.seen < e.since {
		e.renewed, e.since = true, old.seen
	}
	equal := old.doc.Root().Equal(v)
	if equal && old.seen == seen {
		return
	}
	n := &e.writable(k).entries[at]
	n.seen = seen
	if !equal {
		n.doc = v.Document()
	}
}
