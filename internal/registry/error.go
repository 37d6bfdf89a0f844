package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/freshet-io/freshet"
)

// Error says why something is not registered. Nodes send it to each other as JSON. It is a freshet.Error as well, for surfaces that
// have one form for all errors.
type Error struct {
	Kind   freshet.Kind
	Msg    string // empty where the faults say everything
	Faults []Fault
}

// Fault is what is wrong with one field of a change.
type Fault struct {
	Field string // dotted: config.minute
	Text  string
	// Sentence says that the text stands alone. Otherwise it goes on from the name of the field: "is required".
	Sentence bool
}

func (e *Error) Error() string { return e.general().Error() }

// Unwrap returns the error as the rest of the program knows it.
func (e *Error) Unwrap() error { return e.general() }

func (e *Error) general() *freshet.Error {
	g := &freshet.Error{Kind: e.Kind, Msg: e.Msg}
	if e.Msg == "" {
		g.Msg = "The gateway does not accept this"
	}
	for _, f := range e.Faults {
		g.Fields = append(g.Fields, freshet.FieldError{Field: f.Field, Message: f.Text})
	}
	return g
}

var errNotFound = &Error{Kind: freshet.NotFound, Msg: "Not found"}

// known gives what the store does not find the words that all surfaces have for it.
func known(err error) error {
	if _, ours := errors.AsType[*Error](err); !ours && freshet.KindOf(err) == freshet.NotFound {
		return errNotFound
	}
	return err
}

func found[T any](value *T, err error) (*T, error) {
	if err != nil {
		return nil, known(err)
	}
	return value, nil
}

// faults collects what is wrong with a change: the first fault of each field.
type faults []Fault

func (f *faults) has(field string) bool {
	return slices.ContainsFunc(*f, func(known Fault) bool { return known.Field == field })
}

func (f *faults) put(fault Fault) {
	if !f.has(fault.Field) {
		*f = append(*f, fault)
	}
}

// add takes what goes on from the name of the field.
func (f *faults) add(field, format string, args ...any) {
	f.put(Fault{Field: field, Text: fmt.Sprintf(format, args...)})
}

// say takes a sentence.
func (f *faults) say(field, format string, args ...any) {
	f.put(Fault{Field: field, Text: fmt.Sprintf(format, args...), Sentence: true})
}

// err is nil if there are no faults.
func (f *faults) err(kind freshet.Kind) error { return f.errWith(kind, "") }

func (f *faults) errWith(kind freshet.Kind, msg string) error {
	if len(*f) == 0 {
		return nil
	}
	slices.SortFunc(*f, func(a, b Fault) int { return strings.Compare(a.Field, b.Field) })
	return &Error{Kind: kind, Msg: msg, Faults: *f}
}

// taken adds a fault if a search found something.
func (f *faults) taken(field, value string, found error) error {
	if found == nil {
		f.add(field, alreadyExists, value)
		return nil
	}
	if freshet.KindOf(found) == freshet.NotFound {
		return nil
	}
	return fmt.Errorf("look for %s: %w", field, found)
}

const alreadyExists = "already exists with value '%s'"

// missing adds a fault for a reference to nothing, and returns any other error.
func (f *faults) missing(field, id string, err error) error {
	if err == nil {
		return nil
	}
	if freshet.KindOf(err) != freshet.NotFound {
		return err
	}
	f.add(field, "%s does not exist", id)
	return nil
}

// unchanged finds another value for a field that cannot change.
func (f *faults) unchanged(field string, given *string, value string) {
	if given != nil && *given != value {
		f.add(field, "cannot be updated")
	}
}
