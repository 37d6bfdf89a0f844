package httpkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/freshet-io/freshet"
)

// statuses is the one table from a kind of failure to an HTTP status, for every HTTP API of the service.
var statuses = map[freshet.Kind]int{
	freshet.Internal:            http.StatusInternalServerError,
	freshet.Invalid:             http.StatusBadRequest,
	freshet.NotFound:            http.StatusNotFound,
	freshet.TopicNotFound:       http.StatusNotFound,
	freshet.Conflict:            http.StatusConflict,
	freshet.MethodNotAllowed:    http.StatusMethodNotAllowed,
	freshet.PreconditionFailed:  http.StatusPreconditionFailed,
	freshet.TooLarge:            http.StatusRequestEntityTooLarge,
	freshet.UnsupportedMedia:    http.StatusUnsupportedMediaType,
	freshet.Unauthenticated:     http.StatusUnauthorized,
	freshet.MalformedCredential: http.StatusUnauthorized,
	freshet.UnknownCredential:   http.StatusUnauthorized,
	freshet.RevokedCredential:   http.StatusUnauthorized,
	freshet.ExpiredCredential:   http.StatusUnauthorized,
	freshet.AccountDisabled:     http.StatusUnauthorized,
	freshet.Forbidden:           http.StatusForbidden,
	freshet.ConnectionLimit:     http.StatusTooManyRequests,
	freshet.MessageLimit:        http.StatusTooManyRequests,
	freshet.TooManyRequests:     http.StatusTooManyRequests,
	freshet.Unavailable:         http.StatusServiceUnavailable,
	freshet.Timeout:             http.StatusGatewayTimeout,
	freshet.TopicGone:           http.StatusNotFound,
	freshet.SourceFailed:        http.StatusBadGateway,
	freshet.SourceUnreachable:   http.StatusBadGateway,
	freshet.SourceUnauthorized:  http.StatusBadGateway,
	freshet.SourceForbidden:     http.StatusBadGateway,
	freshet.SourceExpired:       http.StatusBadGateway,
	freshet.SourceUnknownHost:   http.StatusBadGateway,
	freshet.SourceUnreadable:    http.StatusBadGateway,
	freshet.TopicLimit:          http.StatusForbidden,
	freshet.DocumentLimit:       http.StatusInsufficientStorage,
}

// internalMessage is all a caller learns about a failure that nobody classified.
const internalMessage = "Something went wrong on our side; the server's log has the details"

// ErrorBody is the body of every error answer.
type ErrorBody struct {
	Message string               `json:"message" doc:"What went wrong, for people" example:"The request is not valid"`
	Errors  []freshet.FieldError `json:"errors,omitempty" nullable:"false" doc:"The fields at fault, where fields are at fault"`
}

// Status returns the HTTP status for err.
func Status(err error) int { return statuses[freshet.KindOf(err)] }

// Body returns what a caller may know about err.
func Body(err error) ErrorBody {
	e, ok := errors.AsType[*freshet.Error](err)
	if !ok || e.Kind == freshet.Internal {
		return ErrorBody{Message: internalMessage}
	}
	if e.Msg == "" {
		return ErrorBody{Message: http.StatusText(Status(err)), Errors: e.Fields}
	}
	return ErrorBody{Message: e.Msg, Errors: e.Fields}
}

// SetErrorHeaders sets the headers that go with err, before its status is written.
func SetErrorHeaders(h http.Header, err error) {
	h.Set("Cache-Control", "no-store")
	if e, ok := errors.AsType[*freshet.Error](err); ok && e.RetryAfter > 0 {
		h.Set("Retry-After", retryAfter(e.RetryAfter))
	}
}

// retryAfter rounds up: a client that comes back on the second must not be refused again.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}

// WriteError answers with err. Only failures of our own are logged; the caller knows about the others.
func WriteError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	LogFailure(r, log, err)
	SetErrorHeaders(w.Header(), err)
	WriteJSON(w, Status(err), Body(err))
}

// LogFailure logs err if it is our failure and the client is still there to be failed. A used up quota is not, for all that its
// status says. What stops every request, such as a full disk, was logged when it began.
func LogFailure(r *http.Request, log *slog.Logger, err error) {
	if Status(err) >= http.StatusInternalServerError && freshet.KindOf(err) != freshet.DocumentLimit && !ClientGone(r) {
		level := slog.LevelError
		if freshet.IsLogged(err) {
			level = slog.LevelDebug
		}
		log.Log(r.Context(), level, "request failed", "method", r.Method, "path", SafePath(r.URL.Path), "err", err)
	}
}

// WriteJSON answers with v as JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	WriteBody(w, status, v)
}

// WriteBody is WriteJSON for answers that name their content type themselves.
func WriteBody(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // what we answer with can be encoded
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // fails only when the client is gone
}
