package jsonpatch

// Join returns one change that leads to a document of so many bytes, given the patches that lead there, oldest first. They go without
// what later ones overwrite, as far as that is easily seen. There must be some, as Diff makes them and without a gap.
func Join(length int, patches ...[]byte) Change {
	best := join(patches)
	if squashed, ok := squash(best); ok {
		best = squashed
	}
	if len(best) > wholeAbove && len(best) > length {
		return Change{Kind: Whole}
	}
	return Change{Kind: Patched, Patch: best}
}

// joinedLen returns the length of patches joined, or a little more.
func joinedLen(patches [][]byte) int {
	size := 1
	for _, p := range patches {
		size += len(p) - 1
	}
	return size
}

// join concatenates patches.
func join(patches [][]byte) []byte {
	out := append(make([]byte, 0, joinedLen(patches)+1), '[')
	for _, p := range patches {
		if len(p) <= len("[]") {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, p[1:len(p)-1]...)
	}
	return append(out, ']')
}

// squash leaves out operations that a later one overwrites. It does so only if all are replacements: then no path
// changes its meaning on the way, and an operation is without effect exactly if a later one replaces its target or something
// around it.
func squash(patch []byte) ([]byte, bool) {
	doc, err := Parse(patch, Limits{})
	if err != nil {
		return nil, false
	}
	ops := make([]Value, 0, doc.Root().Len())
	for v := range doc.Root().Elements() {
		if memberText(v, "op") != "replace" {
			return nil, false
		}
		ops = append(ops, v)
	}
	replaced := make(map[string]bool, len(ops))
	kept := make([]bool, len(ops))
	for i := len(ops) - 1; i >= 0; i-- {
		path := memberText(ops[i], "path")
		if kept[i] = !covered(replaced, path); kept[i] {
			replaced[path] = true
		}
	}
	out := append(make([]byte, 0, len(patch)), '[')
	for i, v := range ops {
		if !kept[i] {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v.Bytes()...)
	}
	return append(out, ']'), true
}

// covered reports whether a path, or one around it, is among those replaced.
func covered(replaced map[string]bool, path string) bool {
	if replaced[path] {
		return true
	}
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' && replaced[path[:i]] {
			return true
		}
	}
	return false
}
