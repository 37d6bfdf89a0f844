package router

import (
	"slices"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
)

// Mode is what a subscriber gets after its first document.
type Mode uint8

// The delivery modes.
const (
	Patches   Mode = iota // only what changed
	Snapshots             // the whole document each time
)

// Variant is one way to receive a topic. Everybody with the same one gets the same bytes. It is comparable.
type Variant struct {
	Mode       Mode
	Compressed bool
	Event      string // the name of full documents
	Filter     Filter
}

// Filter selects items of an item topic by their identifiers. The zero value selects everything.
type Filter struct {
	list string // sorted, without repetitions, separated by commas
}

// ParseFilter reads a list of identifiers separated by commas. An identifier with a comma in it cannot be asked for.
func ParseFilter(text string) Filter {
	ids := slices.DeleteFunc(strings.Split(text, ","), func(id string) bool { return id == "" })
	slices.Sort(ids)
	return Filter{strings.Join(slices.Compact(ids), ",")}
}

// IsZero reports whether the filter selects everything.
func (f Filter) IsZero() bool { return f.list == "" }

func (f Filter) content() content.Filter { return content.ParseFilter(f.list) }

// check refuses a variant that the topic cannot have.
func (v Variant) check(topic *freshet.Topic) error {
	if !v.Filter.IsZero() && topic.Publisher.Payload.Type != freshet.PayloadItem {
		return freshet.Errorf(freshet.Invalid, "X-Sd-Filter needs an item topic; this one has whole documents")
	}
	return nil
}
