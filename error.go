package freshet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says what went wrong, independent of the surface that reports it. Each surface has one table from Kind to
// its own code: HTTP status in httpkit, SSE code in subscribe, exit code in cli.
type Kind int

// The kinds of failure. Internal is the zero value, so an error nobody classified never leaks its text.
const (
	Internal Kind = iota

	// What is wrong with a request.
	Invalid            // malformed or against a rule; Fields says where
	NotFound           // no such thing, or not yours to see
	TopicNotFound      // no such topic
	Conflict           // clashes with something that exists
	MethodNotAllowed   // the thing exists but does not do this
	PreconditionFailed // a condition such as If-Match did not hold
	TooLarge           // over a size limit
	UnsupportedMedia   // a content type or encoding we do not read

	// What is wrong with the one who asks.
	Unauthenticated     // no credential where one is required, or one for something else
	MalformedCredential // cannot be a credential
	UnknownCredential   // well formed, but nobody's
	RevokedCredential   // renewed since
	ExpiredCredential   // too old
	AccountDisabled     // the account is switched off
	ConnectionLimit     // too many connections at once
	MessageLimit        // the month's messages are used up
	TooManyRequests     // over a rate; RetryAfter says when to come back

	// What is wrong with us, or with the topic.
	Unavailable // we cannot serve this now; try again
	Timeout     // somebody took too long
	TopicGone   // the topic was deleted, or can no longer publish

	// What is wrong with the data source of a topic.
	SourceFailed       // it answered with an error, or broke off
	SourceUnreachable  // no connection, no valid TLS, no answer in time, or an address that is not allowed
	SourceUnauthorized // it does not accept our credentials
	SourceForbidden    // it no longer lets us in
	SourceExpired      // it says that our token expired
	SourceUnknownHost  // its name is not known
	SourceUnreadable   // its answer is not JSON, too large, or does not fit the topic

	// Nodes tell each other kinds by number, also nodes of different versions: new ones come last.
	TopicLimit    // the account or the app has as many topics as its quota allows
	DocumentLimit // its documents are as long together as its quota allows
	Forbidden     // we know who it is, and this is not for them

	numKinds
)

// Kinds lists every kind, so that the table of each surface can be tested for completeness.
func Kinds() []Kind {
	all := make([]Kind, numKinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Error is the one error type of the domain. Err is only logged; everything else may be shown to the caller.
type Error struct {
	Kind       Kind
	Msg        string
	Fields     []FieldError
	RetryAfter time.Duration // when trying again can help; 0 says nothing
	Logged     bool          // the cause is in the log already, and need not be there for every request that meets it
	Err        error
}

// FieldError names one field of a request, as a dotted path, and what is wrong with it.
type FieldError struct {
	Field   string `json:"field" doc:"Dotted path of the field at fault" example:"publisher.config.url"`
	Message string `json:"message" doc:"What is wrong with it" example:"is required"`
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Msg)
	for i, f := range e.Fields {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(f.Field + " " + f.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of the kind whose text may be shown, with everything in its arguments. It wraps nothing, so there is no %w;
// a cause that is only logged goes into Err through Wrap.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// Wrap attaches a kind and a public text to a cause that is only logged.
func Wrap(kind Kind, cause error, msg string) *Error {
	return &Error{Kind: kind, Msg: msg, Err: cause}
}

// KindOf returns the kind of the first domain error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// IsLogged reports whether the cause of err is in the log already.
func IsLogged(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Logged
}

// faults collects what is wrong with a value, field by field, so that one answer names everything.
type faults []FieldError

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Msg: "The request is not valid", Fields: f}
}

// Together merges what several checks found into one answer. An error that is not about fields wins over all; of
// several about one field the first does.
func Together(errs ...error) error {
	var all faults
	for _, err := range errs {
		if err == nil {
			continue
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != Invalid || len(e.Fields) == 0 {
			return err
		}
		for _, f := range e.Fields {
			if !slices.ContainsFunc(all, func(known FieldError) bool { return known.Field == f.Field }) {
				all = append(all, f)
			}
		}
	}
	return all.err()
}

// InvalidField returns an error about one field of a request.
func InvalidField(field, format string, args ...any) error {
	var f faults
	f.add(field, format, args...)
	return f.err()
}
