package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

const (
	tryTimeout   = 2 * time.Second  // of one request; a leader that takes longer is away
	writeTimeout = 15 * time.Second // of a write with all its tries: electing a leader takes up to 7 s
	readTimeout  = 10 * time.Second
)

// Codes of JetStream's errors.
const (
	codeNoMessage       = 10037
	codeStreamNotFound  = 10059
	codeStreamExists    = 10058
	codeWrongSequence   = 10071
	codeBusySubject     = 10164 // another write to the subject is under way
	codeTooLarge        = 10054
	codeOverlap         = 10065 // of the subjects of two streams
	codeReplicas        = 10074 // one server alone keeps one copy
	codeDisabled        = 10076 // the server runs without JetStream
	codeAccountDisabled = 10039 // the account does
)

// noRoom are the codes of what does not fit any more: resources of the servers, memory, storage, and limits of the stream.
var noRoom = []int{10023, 10028, 10047, 10077}

// apiError is an error that JetStream replies with.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return "JetStream: " + e.Description }

func isAPI(err error) bool {
	_, ok := errors.AsType[*apiError](err)
	return ok
}

func hasCode(err error, codes ...int) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && slices.Contains(codes, e.ErrCode)
}

// wrongSequence returns the last sequence of a subject because of which JetStream does not store after the expected one. A server
// that does not say it is taken for one that knows more.
func wrongSequence(err error, expected uint64) (last uint64, is bool) {
	e, ok := errors.AsType[*apiError](err)
	if !ok || e.ErrCode != codeWrongSequence {
		return 0, false
	}
	_, digits, _ := strings.Cut(e.Description, ": ")
	if last, err = strconv.ParseUint(digits, 10, 64); err != nil {
		last = expected + 1
	}
	return last, true
}

// unknown is the error of a call that the servers did not answer in time, and that changed nothing.
func unknown(err error) error {
	e := freshet.Wrap(freshet.Unavailable, err, "The cluster does not answer, please try again")
	e.RetryAfter = time.Second
	return e
}

// unclear is unknown for a write that may have taken effect.
func unclear(err error) error { return unknown(fmt.Errorf("%w: %w", grid.ErrUnknown, err)) }

// call asks JetStream once. An error in the reply is the caller's matter.
func (l *link) call(ctx context.Context, name string, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return err
		}
	}
	msg, err := l.conn.RequestWithContext(ctx, "$JS.API."+name, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(msg.Data, reply)
}

func backoff(try int) time.Duration {
	d := min(20*time.Millisecond<<min(try, 4), 250*time.Millisecond)
	return d/2 + rand.N(d)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
