package router

import (
	"crypto/sha256"
	"encoding/hex"
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

// Mark is the end of the epochs that subscribers with this filter see. What a filter shows is a document of its own, with
// its own indexes: an id from another view of the topic must not pass for a place in this one.
func (f Filter) Mark() string {
	if f.IsZero() {
		return ""
	}
	sum := sha256.Sum256([]byte(f.list))
	return "f" + hex.EncodeToString(sum[:5])
}

func (f Filter) content() content.Filter { return content.ParseFilter(f.list) }

// check refuses a variant that the topic cannot have.
func (v Variant) check(topic *freshet.Topic) error {
	if !v.Filter.IsZero() && topic.Publisher.Payload.Type != freshet.PayloadItem {
		return freshet.Errorf(freshet.Invalid, "X-Sd-Filter needs an item topic; this one has whole documents")
	}
	return nil
}
