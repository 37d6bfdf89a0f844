package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// Error is an answer other than the one asked for.
type Error struct {
	Status     int                  // of the answer
	Message    string               // from the server, for people
	Fields     []freshet.FieldError // what is wrong with the request, field by field
	RetryAfter time.Duration        // when trying again can help; 0 says nothing
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Fields {
		b.WriteString([]string{": ", "; "}[min(i, 1)] + strings.TrimSpace(f.Field+" "+f.Message))
	}
	return b.String()
}

// StatusOf returns the status of the Error in err's chain, or 0.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// StreamError is the data of an error event. Only Code and Category are for programs.
type StreamError struct {
	Code      int       `json:"code"`
	Category  string    `json:"category"`
	Message   string    `json:"message"`
	SessionID string    `json:"sessionId"` // for whoever runs the server
	Time      time.Time `json:"datetime"`
}

// The categories of a StreamError.
const (
	ClientException = "ClientException" // the request is at fault
	ServerException = "ServerException" // the server is
	TopicException  = "TopicException"  // the source of the topic's data is
)

// TopicGone is the code of a topic that was deleted under its subscribers, and, on a stream that goes on, of one whose newest document is
// more than a quota allows.
const TopicGone = 60000

func (e *StreamError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Fatal reports whether the error is final: connecting again would meet it again. A Stream ends with it; after any other it connects
// again by itself.
func (e *StreamError) Fatal() bool {
	o, known := outcomes[e.Code]
	return o == final || !known && e.Category == ClientException
}

// Renew reports whether connecting again needs new credentials first. A Stream with a SignatureKey makes a new signature each time it
// connects; whoever brought a signed URL has to get another.
func (e *StreamError) Renew() bool { return outcomes[e.Code] == renew }

// outcome is what a client does about an error event.
type outcome int

const (
	passing outcome = iota // connects again
	renew                  // connects again, with new credentials
	final                  // stops
)

// UnreachableError says that no answer came at all.
type UnreachableError struct {
	URL string // without path and query, which may carry secrets
	Err error
}

func (e *UnreachableError) Error() string { return "no answer from " + e.URL + ": " + e.Err.Error() }

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable leaves the address of the request out of the cause: a target's URL is part of it, and may be secret.
func unreachable(base string, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return &UnreachableError{URL: base, Err: err}
}

const maxErrorBody = 64 << 10

// responseError reads an error in the dialect of the management and publishing APIs, {"message", "errors"}, or of the gateway's
// administration, which has a member for each field at fault.
func responseError(resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	var known struct {
		Message string               `json:"message"`
		Errors  []freshet.FieldError `json:"errors"`
	}
	if json.Unmarshal(body, &known) == nil {
		e.Message, e.Fields = known.Message, known.Errors
	}
	if e.Message == "" {
		e.Fields = fieldMap(body)
	}
	switch {
	case e.Message != "":
	case len(e.Fields) > 0:
		e.Message = "The request is not valid"
	case resp.Header.Get("Location") != "":
		e.Message = "The server answered " + resp.Status + " to " + resp.Header.Get("Location") + "; use that address"
	default:
		e.Message = "The server answered " + resp.Status
	}
	return e
}

func fieldMap(body []byte) []freshet.FieldError {
	var members map[string]string
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	var fields []freshet.FieldError
	for name, text := range members {
		fields = append(fields, freshet.FieldError{Field: name, Message: strings.TrimPrefix(text, name+" ")})
	}
	slices.SortFunc(fields, func(a, b freshet.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return fields
}
