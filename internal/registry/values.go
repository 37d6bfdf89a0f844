package registry

import (
	"net/url"
	"slices"
	"strings"

	"github.com/freshet-io/freshet"
)

// Values is what a request says, by field, whichever way it says it: strings from a form or a query, otherwise what JSON has, and
// nested where names have dots. nil unsets a field.
type Values map[string]any

// blank is a field of a form that was sent with nothing in it. No type accepts it.
type blank struct{}

// AddForm takes a=1, a=1&a=2, a[]=1 and a[1]=1&a[2]=2; the last three are lists.
func (v Values) AddForm(form url.Values) {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names) // a[1] before a[2]
	lists := map[string][]any{}
	for _, name := range names {
		base, index, indexed := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		if indexed = indexed && strings.HasSuffix(name, "]") && strings.Trim(index, "0123456789") == ""; !indexed {
			base = name
		}
		values := make([]any, len(form[name]))
		for i, text := range form[name] {
			values[i] = text
			if text == "" {
				values[i] = blank{}
			}
		}
		if !indexed && len(values) == 1 {
			v.put(base, values[0])
			continue
		}
		lists[base] = append(lists[base], values...)
	}
	for base, values := range lists {
		v.put(base, values)
	}
}

// AddObject takes the members of a JSON object. They win over what is there.
func (v Values) AddObject(object map[string]any) {
	for _, nested := range []bool{false, true} { // so that config.minute adds to config, whichever was read first
		for name, value := range object {
			if strings.Contains(name, ".") == nested {
				v.put(name, value)
			}
		}
	}
}

// put makes config.minute an entry of config. Something else in the place of config is replaced.
func (v Values) put(name string, value any) {
	first, rest, nested := strings.Cut(name, ".")
	if !nested || first == "" || rest == "" {
		v[name] = value
		return
	}
	object, ok := v[first].(map[string]any)
	if !ok {
		object = map[string]any{}
		v[first] = object
	}
	object[rest] = value
}

// maxFields bounds what one request can make us look at.
const maxFields = 1000

// Check refuses more fields than any request needs.
func (v Values) Check() error {
	if len(v) > maxFields {
		return &Error{Kind: freshet.Invalid, Msg: "Too many fields"}
	}
	return nil
}

// ID is the identifier that the request names, if it can be one.
func (v Values) ID() (id string, ok bool) {
	id, _ = v["id"].(string)
	return id, freshet.IsID(id)
}

// reader turns values into a change and remembers what it cannot read.
type reader struct {
	values Values
	faults faults
}

// raw returns a text exactly as it was given, "" for what is none, and nil for nothing.
func (r *reader) raw(name string) *string {
	value, given := r.values[name]
	if !given {
		return nil
	}
	text, _ := value.(string)
	return &text
}

// text is raw for a field that has to be a text. null empties it.
func (r *reader) text(name, fault string) *string {
	value := r.values[name]
	if _, ok := value.(string); value != nil && !ok {
		r.faults.add(name, "%s", fault)
	}
	return r.raw(name)
}

// flag is text for booleans. null is false.
func (r *reader) flag(name string) *bool {
	value, given := r.values[name]
	if !given {
		return nil
	}
	read, ok := readFlag(value)
	if value != nil && !ok {
		r.faults.add(name, notFlag)
	}
	isSet, _ := read.(bool)
	isSet = isSet && ok
	return &isSet
}

// onlyKnown finds fields that do not exist.
func (r *reader) onlyKnown(names ...string) {
	for name := range r.values {
		if !slices.Contains(names, name) {
			r.faults.add(name, unknown)
		}
	}
}
