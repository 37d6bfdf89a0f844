package settings

import (
	"fmt"
	"strings"

	"github.com/freshet-io/freshet"
)

// Fault is one thing that is wrong with the settings.
type Fault struct {
	Where   string // file:line, variable or flag; empty when Key says it already
	Key     string // the setting, or the name that is none
	Message string // what is wrong and what would be right, to be read after Key
}

func (f Fault) String() string {
	text := strings.TrimSpace(f.Key + " " + f.Message)
	if f.Where == "" {
		return text
	}
	return f.Where + ": " + text
}

// Error is everything that is wrong with the settings. Its kind is Invalid.
type Error struct {
	Faults []Fault
}

func (e *Error) Error() string {
	if len(e.Faults) == 1 {
		return e.Faults[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems with the settings:", len(e.Faults))
	for _, f := range e.Faults {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// Unwrap gives the error its kind.
func (e *Error) Unwrap() error { return freshet.Errorf(freshet.Invalid, "The settings are not valid") }

// faults collects what is wrong while the layers are read.
type faults []Fault

func (f *faults) add(where, key, format string, args ...any) {
	*f = append(*f, Fault{Where: where, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Faults: f}
}

// seeAll ends a sentence about a name that resembles no other.
const seeAll = "; freshet config print lists them all"

// didYouMean is the end of a sentence that names the nearest candidate, if there is one.
func didYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
