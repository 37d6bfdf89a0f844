package subscribe

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/sse"
)

// codes is the one table from a kind of failure to the code of an error event.
var codes = map[freshet.Kind]int{
	freshet.Internal:            50000,
	freshet.Invalid:             40000,
	freshet.NotFound:            40400,
	freshet.TopicNotFound:       40401,
	freshet.Conflict:            40000,
	freshet.MethodNotAllowed:    40500,
	freshet.PreconditionFailed:  40000,
	freshet.TooLarge:            40000,
	freshet.UnsupportedMedia:    40000,
	freshet.Unauthenticated:     40100,
	freshet.MalformedCredential: 40001,
	freshet.UnknownCredential:   40110,
	freshet.RevokedCredential:   40111,
	freshet.ExpiredCredential:   40112,
	freshet.AccountDisabled:     40120,
	freshet.Forbidden:           40100,
	freshet.ConnectionLimit:     40121,
	freshet.MessageLimit:        40122,
	freshet.TooManyRequests:     40121,
	freshet.Unavailable:         50000,
	freshet.Timeout:             50001,
	freshet.TopicGone:           60000,
	freshet.SourceFailed:        60001,
	freshet.SourceUnreachable:   60100,
	freshet.SourceUnauthorized:  60101,
	freshet.SourceForbidden:     60102,
	freshet.SourceExpired:       60103,
	freshet.SourceUnknownHost:   60400,
	freshet.SourceUnreadable:    61500,
	freshet.TopicLimit:          40121,
	freshet.DocumentLimit:       60000,
}

// internalMessage is all a client learns about a failure that nobody classified.
const internalMessage = "Something went wrong on our side"

// failure is the data of an error event.
type failure struct {
	Datetime  string `json:"datetime"`
	Code      int    `json:"code"`
	Category  string `json:"category"`
	Message   string `json:"message"`
	Status    int    `json:"status"` // deprecated; old clients look at nothing else
	SessionID string `json:"sessionId"`
	Cause     string `json:"cause,omitempty"`     // old clients only
	Timestamp int64  `json:"timestamp,omitempty"` // milliseconds; old clients only
}

func newFailure(err error, legacy bool, now time.Time) failure {
	code := codes[freshet.KindOf(err)]
	f := failure{
		Datetime:  now.UTC().Format("2006-01-02T15:04:05.000Z"),
		Code:      code,
		Category:  category(code),
		Message:   message(err),
		Status:    code / 100,
		SessionID: rand.Text(),
	}
	if legacy {
		f.Cause = f.Message
		f.Timestamp = now.UnixMilli()
	}
	return f
}

const serverException = "ServerException"

func category(code int) string {
	switch code / 10000 {
	case 4:
		return "ClientException"
	case 6:
		return "TopicException"
	}
	return serverException
}

func message(err error) string {
	e, ok := errors.AsType[*freshet.Error](err)
	if !ok || e.Kind == freshet.Internal {
		return internalMessage
	}
	return e.Msg
}

// fatalRetry keeps clients, which reconnect by themselves, from hammering on a door that stays shut.
const fatalRetry = 30 * time.Second

// frame is the last frame of a stream.
func (f failure) frame(retry time.Duration) []byte {
	return sse.AppendEvent(nil, sse.Event{Retry: retry, Name: "error", Data: f.json()})
}

func (f failure) json() []byte {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return data
}

// retryFor is when a client that got err may try again.
func retryFor(err error) time.Duration {
	if e, ok := errors.AsType[*freshet.Error](err); ok && e.RetryAfter > 0 {
		return e.RetryAfter
	}
	return fatalRetry
}
