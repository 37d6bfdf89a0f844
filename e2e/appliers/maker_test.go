package appliers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
)

// A maker makes random documents of values that JavaScript represents exactly, and changes them.
type maker struct{ *rand.Rand }

var keys = []string{"a", "b", "c", "id", "name", "a/b", "m~n", "~1", "", "é", "日本", "\"q\"", "0", "1", "-", "a b", "😀", "\u2028", "\t"}

func (m maker) value(levels int) any {
	switch k := m.IntN(8); {
	case k < 2 && levels > 0:
		arr := []any{}
		for range m.IntN(9) {
			arr = append(arr, m.value(levels-1))
		}
		return arr
	case k < 5 && levels > 0:
		obj := map[string]any{}
		for range m.IntN(8) {
			obj[keys[m.IntN(len(keys))]] = m.value(levels - 1)
		}
		return obj
	case k < 6:
		return keys[m.IntN(len(keys))] + strconv.Itoa(m.IntN(3))
	case k < 7:
		return json.Number(fmt.Sprintf("%d.%d", m.IntN(50), m.IntN(100)))
	default:
		return []any{nil, true, false, json.Number("0"), json.Number("1e3")}[m.IntN(5)]
	}
}

// changed returns a changed copy.
func (m maker) changed(v any, levels int) any {
	if m.IntN(14) == 0 {
		return m.value(levels)
	}
	switch v := v.(type) {
	case []any:
		return m.changedArray(v, levels)
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) { // in order, so that a seed always gives the same
			if m.IntN(10) > 0 {
				out[k] = m.changed(v[k], levels-1)
			}
		}
		if m.IntN(4) == 0 {
			out[keys[m.IntN(len(keys))]] = m.value(levels - 1)
		}
		return out
	}
	if m.IntN(5) == 0 {
		return m.value(0)
	}
	return v
}

func (m maker) changedArray(v []any, levels int) any {
	out := []any{}
	for _, e := range v {
		switch m.IntN(8) {
		case 0: // removed
		case 1:
			out = append(out, m.value(levels-1), e)
		case 2:
			out = append(out, m.changed(e, levels-1))
		default:
			out = append(out, e)
		}
	}
	if m.IntN(5) == 0 {
		m.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

func (m maker) text(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
