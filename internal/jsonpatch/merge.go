package jsonpatch

// Merge applies a JSON Merge Patch (RFC 7396) and returns the new document; the old one stays as it is. Members keep their
// order, new ones come last. A patch that is no JSON gives a *SyntaxError, a result beyond the limits a *PatchError.
func Merge(doc *Document, patch []byte, limits Limits) (*Document, error) {
	p, err := ParseMergePatch(patch, limits)
	if err != nil {
		return nil, err
	}
	return p.Apply(doc, limits)
}

// A MergePatch is a JSON Merge Patch (RFC 7396) that was read, to be applied to any number of documents. It never changes.
type MergePatch Document

// ParseMergePatch reads a JSON Merge Patch. It takes src over. Its error is a *SyntaxError.
func ParseMergePatch(src []byte, limits Limits) (*MergePatch, error) {
	parsed, err := Parse(src, limits)
	if err != nil {
		return nil, err
	}
	return (*MergePatch)(parsed), nil
}

// Apply is Merge.
func (p *MergePatch) Apply(doc *Document, limits Limits) (*Document, error) {
	m := merger{target: doc, patch: (*Document)(p)}
	text := m.value(make([]byte, 0, len(doc.text)+len(p.text)), place{}, place{})
	return accept(doc, text, limits)
}

// A merger writes the result of a merge.
type merger struct{ target, patch *Document }

// value appends what the value at t becomes by the patch at p. If t is none, there is no value yet.
func (m *merger) value(dst []byte, t, p place) []byte {
	if m.patch.node(p).kind() != Object {
		return append(dst, m.patch.value(p)...)
	}
	if t == none || m.target.node(t).kind() != Object {
		return m.members(append(dst, '{'), p, nil)
	}
	patches := m.patch.children(nil, p)
	index := newKeyIndex(len(patches))
	for i, q := range patches {
		index.add(hashKey(m.patch, q), place{uint32(i) + 1, 0})
	}
	merged := make([]bool, len(patches))
	dst = append(dst, '{')
	for _, o := range m.target.children(nil, t) {
		at, ok := index.find(hashKey(m.target, o), func(at place) bool {
			return equalKeys(m.target, o, m.patch, patches[at.at-1])
		})
		if !ok {
			dst = append(appendKey(dst, m.target.key(o)), m.target.value(o)...)
			continue
		}
		merged[at.at-1] = true
		if q := patches[at.at-1]; m.patch.node(q).kind() != Null {
			dst = m.value(appendKey(dst, m.target.key(o)), o, q)
		}
	}
	return m.members(dst, p, merged)
}

// members appends those members of the patch object at p that were not merged into others, and closes the object.
func (m *merger) members(dst []byte, p place, merged []bool) []byte {
	for i, q := range m.patch.children(nil, p) {
		if m.patch.node(q).kind() == Null || merged != nil && merged[i] {
			continue
		}
		dst = m.value(appendKey(dst, m.patch.key(q)), none, q)
	}
	return append(dst, '}')
}

// appendKey appends a key and its colon to an object that is being written.
func appendKey(dst, key []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), key...), '"', ':')
	return dst
}
