package openapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// mark separates field and message where the library offers only a text for both. No JSON text of a client can
// bring it in: it only looks at messages that are made here.
const mark = "\x00"

func fieldFault(field, message string) error { return errors.New(mark + field + mark + message) }

// bodyFault is about the body as a whole.
func bodyFault(message string) error { return fieldFault("", message) }

const unknownField = "is not a known field"

// The library's messages are package variables, and so is its maker of errors. They are set once, here, before any
// API is built.
func init() {
	huma.ValidateStrictCasing = true
	huma.NewError = newError
	huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return newError(status, msg, errs...)
	}
	validation.MsgExpectedRequiredProperty = mark + "%s" + mark + "is required"
	validation.MsgUnexpectedProperty = unknownField
	validation.MsgExpectedString = "must be a string"
	validation.MsgExpectedBoolean = "must be true or false"
	validation.MsgExpectedInteger = "must be an integer"
	validation.MsgExpectedNumber = "must be a number"
	validation.MsgExpectedObject = "must be an object"
	validation.MsgExpectedArray = "must be an array"
	validation.MsgExpectedMinimumNumber = "must be at least %.0f" // bounds here are whole numbers
	validation.MsgExpectedMaximumNumber = "must be at most %.0f"
	validation.MsgExpectedOneOf = "must be one of %s"
}

// Error is an error answer of an API.
type Error struct {
	httpkit.ErrorBody
	status  int
	headers http.Header
}

// Fail turns what a handler returned into the answer for it. How long it may be cached is said elsewhere, for every
// answer of an API.
func Fail(err error) *Error {
	e := &Error{ErrorBody: httpkit.Body(err), status: httpkit.Status(err), headers: http.Header{}}
	httpkit.SetErrorHeaders(e.headers, err)
	e.headers.Del("Cache-Control") // the library would add it to the one that is there
	return e
}

func (e *Error) Error() string { return e.Message }

// GetStatus tells the library which status to send.
func (e *Error) GetStatus() int { return e.status }

// GetHeaders tells the library which headers to add.
func (e *Error) GetHeaders() http.Header { return e.headers }

// libraryTexts are the answers for what the library refuses on its own, by its words for it.
var libraryTexts = []struct {
	begins, message string
	status          int
}{
	{"request body is required", "A JSON body is required", http.StatusBadRequest},
	{"request body is too large", "The body is too large", http.StatusRequestEntityTooLarge},
	{"request body read timeout", "The body took too long to arrive", http.StatusRequestTimeout},
	{"cannot read request body", "The body could not be read to its end", http.StatusBadRequest},
}

// newError makes the answer for what the library itself refuses. Unprocessable is a bad request here.
func newError(status int, msg string, errs ...error) huma.StatusError {
	for _, known := range libraryTexts {
		if strings.HasPrefix(msg, known.begins) {
			return &Error{status: known.status, ErrorBody: httpkit.ErrorBody{Message: known.message}}
		}
	}
	switch {
	case status == http.StatusUnsupportedMediaType:
		return Fail(errNotJSON)
	case status >= http.StatusInternalServerError:
		return &Error{status: status, ErrorBody: httpkit.Body(errors.New(msg))}
	}
	e := &Error{status: http.StatusBadRequest, ErrorBody: httpkit.ErrorBody{Message: "The request is not valid"}}
	for _, err := range errs {
		switch f, isField := fieldError(err); {
		case !isField:
			e.Message = f.Message
		case !names(e.Errors, f.Field):
			e.Errors = append(e.Errors, f)
		}
	}
	slices.SortStableFunc(e.Errors, unknownLast)
	return e
}

func names(faults []freshet.FieldError, field string) bool {
	return slices.ContainsFunc(faults, func(f freshet.FieldError) bool { return f.Field == field })
}

// unknownLast puts unknown fields behind the others and in order: the library finds them in any.
func unknownLast(a, b freshet.FieldError) int {
	aUnknown, bUnknown := a.Message == unknownField, b.Message == unknownField
	switch {
	case aUnknown && bUnknown:
		return strings.Compare(a.Field, b.Field)
	case aUnknown:
		return 1
	case bUnknown:
		return -1
	}
	return 0
}

// fieldError finds the field at fault. A fault of the body as a whole is none of a field, and its text is the
// message of the answer.
func fieldError(err error) (f freshet.FieldError, isField bool) {
	detailer, ok := err.(huma.ErrorDetailer)
	if !ok {
		return freshet.FieldError{Message: "The request is not valid"}, false
	}
	detail := detailer.ErrorDetail()
	where, message := withoutRoot(detail.Location), detail.Message
	if parts := strings.Split(message, mark); len(parts) == 3 {
		where, message = join(where, parts[1]), parts[2]
	}
	if message == "invalid integer" {
		message = "must be an integer" // the library's word for a parameter
	}
	if where == "" {
		return freshet.FieldError{Message: fmt.Sprintf("The body %s", message)}, false
	}
	return freshet.FieldError{Field: short(where), Message: message}, true
}

// maxShown is how much of a field's name an answer repeats; names of unknown fields are the client's.
const maxShown = 200

func short(field string) string {
	if len(field) <= maxShown {
		return field
	}
	return strings.ToValidUTF8(field[:maxShown], "") + "…"
}

// withoutRoot drops "body", "query" or "path" from the front of a location.
func withoutRoot(location string) string {
	_, rest, _ := strings.Cut(location, ".")
	return rest
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	if name == "" {
		return parent
	}
	return parent + "." + name
}
