package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
)

// stream is one stream of JetStream that keeps the last message of each subject. The grid is built from its few operations: store,
// a conditional write whose outcome is known; last, the newest message of a subject; batch, many messages at once; and prove, what a
// majority of the servers says.
type stream struct {
	link  *link
	name  string
	beat  string                      // the subject of this node's heartbeats; empty if there are none
	proof func(subject string) string // where this node writes to prove something about a subject of the stream
}

const (
	roomRetry  = 30 * time.Second // when a write may fit that did not; somebody has to make room
	proofTries = 8                // more than a second, before a server is believed that knows less
)

// publish tries to store a message once.
func (s *stream) publish(ctx context.Context, w *write) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	msg, err := s.link.conn.RequestMsgWithContext(ctx, w.message())
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error *apiError `json:"error"`
		Seq   uint64    `json:"seq"`
	}
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		return 0, err
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// errOvertaken says that a write took effect, and that another one replaced it already.
var errOvertaken = errors.New("grid: written, and replaced already")

// store writes until the outcome is known: nil, grid.ErrConflict if the subject's last sequence is another one, errOvertaken, or an
// error of kind Unavailable if it could not be stored in time; that is grid.ErrUnknown too if it may have been.
//
// A server that says no is not yet an outcome. Who was the leader, was cut off and does not know yet that there is another one gets every
// message as well, and says no before the other one has stored it.
func (s *stream) store(ctx context.Context, w *write) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	unanswered := false // whether there were tries that may have been stored long ago
	giveUp := func(err error) error {
		if unanswered {
			return unclear(err)
		}
		return unknown(err)
	}
	for try := 0; ; try++ {
		seq, err = s.publish(ctx, w)
		last, conflict := wrongSequence(err, w.expected)
		switch {
		case err == nil:
			return seq, nil
		case hasCode(err, codeBusySubject):
			if !pause(ctx, time.Duration(1+rand.IntN(4))*time.Millisecond) {
				return 0, giveUp(err)
			}
			continue
		case conflict && w.checked != "" && (last > w.expected || try == proofTries):
			return 0, grid.ErrConflict
		case conflict && w.checked != "":
			// A leader that was replaced will know it soon.
		case conflict && last > w.expected:
			seq, err = s.outcome(ctx, w, last)
			if errors.Is(err, errTooFar) && !unanswered {
				err = grid.ErrConflict // so far that this write, just made, is not behind it
			}
			return seq, err
		case conflict:
			// Either the subject lost what was there, or this server has not heard of it.
			if lost, _ := s.prove(ctx, w.subject, last); lost {
				return 0, grid.ErrConflict
			}
		case hasCode(err, codeTooLarge):
			return 0, freshet.Wrap(freshet.TooLarge, err, "The document is larger than the NATS servers take")
		case hasCode(err, noRoom...):
			e := freshet.Wrap(freshet.Unavailable, err, "The NATS servers have no room for this; see grid.max_bytes and what the servers may store")
			e.RetryAfter = roomRetry
			return 0, e
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded):
			// Nobody took it, or it was not even sent, so it cannot take effect later.
		case isAPI(err):
			return 0, giveUp(err)
		default:
			unanswered = true
		}
		s.link.faults.suspect()
		if !pause(ctx, backoff(try)) {
			return 0, giveUp(err)
		}
	}
}

// errTooFar says that the marks do not go back far enough.
var errTooFar = errors.New("the subject moved on too far to tell")

// outcome finds out whether a write took effect whose subject has moved on, up to the sequence last at least.
func (s *stream) outcome(ctx context.Context, w *write, last uint64) (uint64, error) {
	msg, err := s.lastFrom(ctx, w.subject, last)
	if err != nil {
		return 0, unclear(err)
	}
	marks, _, _ := unseal(msg.data) // nothing there, or nothing readable, has no marks
	switch at := slices.Index(marks, w.mark); {
	case at == 0:
		return msg.seq, nil
	case at > 0:
		return 0, errOvertaken
	case w.replaces != 0 && slices.Contains(marks, w.replaces), w.replaces == 0 && len(marks) > 0 && len(marks) < maxMarks:
		return 0, grid.ErrConflict // all writes since are known, and this one is not among them
	}
	if w.newestOwn != nil {
		if newest, ok := w.newestOwn(&msg); ok && newest == w.mark {
			return 0, errOvertaken
		} else if ok {
			return 0, grid.ErrConflict
		}
	}
	return 0, unclear(errTooFar)
}

// prove asks a majority whether the last sequence of a subject is seq: it stores something on that condition.
func (s *stream) prove(ctx context.Context, subject string, seq uint64) (bool, error) {
	m := newMark()
	_, err := s.store(ctx, &write{
		subject: s.proof(subject), checked: subject, expected: seq, ttl: time.Minute, mark: m, body: seal([]mark{m}, nil),
	})
	if errors.Is(err, grid.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// last asks the leader for the newest message of a subject, again and again until it answers.
func (s *stream) last(ctx context.Context, subject string) (message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for try := 0; ; try++ {
		msg, err := s.lastOnce(ctx, subject)
		if err == nil {
			return msg, nil
		}
		s.link.faults.suspect()
		if !pause(ctx, backoff(try)) {
			return message{}, unknown(err)
		}
	}
}

// lastFrom is last for a subject that has got as far as a sequence. Who answers with less has not heard of it, unless the subject
// was emptied meanwhile.
func (s *stream) lastFrom(ctx context.Context, subject string, seq uint64) (message, error) {
	for try := 0; ; try++ {
		msg, err := s.last(ctx, subject)
		if err != nil || msg.seq >= seq {
			return msg, err
		}
		if emptied, err := s.prove(ctx, subject, msg.seq); err == nil && emptied {
			return msg, nil
		}
		if !pause(ctx, backoff(try)) {
			return msg, unknown(ctx.Err())
		}
	}
}

func (s *stream) lastOnce(ctx context.Context, subject string) (message, error) {
	var reply struct {
		Error   *apiError `json:"error"`
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Header  []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := s.link.call(ctx, "STREAM.MSG.GET."+s.name, map[string]string{"last_by_subj": subject}, &reply)
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	if hasCode(err, codeNoMessage) {
		return message{}, nil
	}
	m := reply.Message
	return message{subject: m.Subject, seq: m.Seq, data: m.Data, raw: m.Header}, err
}

// batch is which messages are wanted at once.
type batch struct {
	LastOf []string `json:"multi_last,omitempty"`   // the newest of each of these subjects
	NextOf string   `json:"next_by_subj,omitempty"` // or all of this one, as many as Limit
	Limit  int      `json:"batch,omitempty"`
	Seq    uint64   `json:"seq,omitempty"` // from this one on; 0 is from the first
}

// batch asks any replica for several messages. What it returns may be older than what the leader has, and upTo says up to
// which sequence it is complete; 0 if nothing was found.
func (s *stream) batch(ctx context.Context, wanted batch, each func(message)) (upTo uint64, err error) {
	body, err := json.Marshal(wanted)
	if err != nil {
		return 0, err
	}
	conn := s.link.conn
	inbox := conn.NewRespInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = sub.SetPendingLimits(-1, -1)
	if err := conn.PublishRequest("$JS.API.DIRECT.GET."+s.name, inbox, body); err != nil {
		return 0, err
	}
	for {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		msg, err := sub.NextMsgWithContext(ctx)
		cancel()
		if err != nil {
			return 0, err
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
			m := repeated(msg)
			m.subject = msg.Header.Get("Nats-Subject")
			each(m)
		case "204": // the end
			upTo, _ = strconv.ParseUint(msg.Header.Get("Nats-UpTo-Sequence"), 10, 64)
			return upTo, nil
		case "404":
			return 0, nil
		case "503":
			return 0, nats.ErrNoResponders
		default:
			return 0, errors.New("JetStream: " + strings.TrimSpace(status+" "+msg.Header.Get("Description")))
		}
	}
}

// purge removes the messages below a filter that are older than a sequence.
func (s *stream) purge(ctx context.Context, filter string, before uint64) error {
	var reply struct{}
	return s.link.call(ctx, "STREAM.PURGE."+s.name, map[string]any{"filter": filter, "seq": before}, &reply)
}
