package jetstream

import (
	"bytes"
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
	"github.com/nats-io/nats.go"
)

// The few calls of JetStream that the grid is built from, each one round trip, and the one loop that turns them into a
// conditional write with a known outcome.

const (
	tryTimeout   = 2 * time.Second  // of one request; a leader that takes longer is away
	writeTimeout = 15 * time.Second // of a write with all its tries: electing a leader takes up to 7 s
	readTimeout  = 10 * time.Second
	roomRetry    = 30 * time.Second // when a write may fit that did not; somebody has to make room
	proofTries   = 8                // more than a second, before a server is believed that knows less
)

// Codes of JetStream's errors.
const (
	codeNoMessage      = 10037
	codeStreamNotFound = 10059
	codeStreamExists   = 10058
	codeWrongSequence  = 10071
	codeBusySubject    = 10164 // another write to the subject is under way
	codeTooLarge       = 10054
	codeOverlap        = 10065 // of the subjects of two streams
	codeReplicas       = 10074 // one server alone keeps one copy
)

// noRoom are the codes of what does not fit any more: resources of the servers, memory, storage, and limits of the stream.
var noRoom = []int{10023, 10028, 10047, 10077}

// apiError is what JetStream answers.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return "JetStream: " + e.Description }

func hasCode(err error, code int) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.ErrCode == code
}

// refused returns the last sequence of the subject with which JetStream refuses to store after another one. A server that does not
// say it is taken for one that knows more.
func refused(err error, expected uint64) (last uint64, ok bool) {
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

// anySequence writes whatever is there.
const anySequence = ^uint64(0)

// write is a message to be stored.
type write struct {
	subject  string
	expected uint64 // the last sequence of the subject; 0: there is no message; anySequence: no matter
	checked  string // the subject that expected is about, if it is another one
	replaces mark   // of the message that is expected; 0 if there is none
	ttl      time.Duration
	trace    string // of the publication, if somebody follows it
	length   int    // of the document, if it is one
	onces    string // names of publications that the document remembers
	writers  string // who wrote it, and its predecessors
	by       *byline
	body     []byte
}

const (
	traceHeader   = "traceparent" // the name and form that other programs on the same servers know
	onceHeader    = "freshet-once"
	writersHeader = "freshet-writers"
)

// lengthHeader has the length of the document, which items in steps do not tell. Nodes that know nothing of it overlook it.
const lengthHeader = "Freshet-Length"

// minTTL is the shortest that a server takes; it counts in whole seconds.
const minTTL = time.Second

func (w *write) message() *nats.Msg {
	msg := &nats.Msg{Subject: w.subject, Data: w.body, Header: nats.Header{}}
	if w.expected != anySequence {
		msg.Header["Nats-Expected-Last-Subject-Sequence"] = []string{strconv.FormatUint(w.expected, 10)}
	}
	if w.checked != "" {
		msg.Header["Nats-Expected-Last-Subject-Sequence-Subject"] = []string{w.checked}
	}
	if w.ttl > 0 {
		seconds := int64((max(w.ttl, minTTL) + time.Second - 1) / time.Second)
		msg.Header["Nats-TTL"] = []string{strconv.FormatInt(seconds, 10)}
	}
	for _, h := range [...][2]string{{traceHeader, w.trace}, {onceHeader, w.onces}, {writersHeader, w.writers}} {
		if h[1] != "" {
			msg.Header[h[0]] = []string{h[1]}
		}
	}
	if w.length > 0 {
		msg.Header[lengthHeader] = []string{strconv.Itoa(w.length)}
	}
	return msg
}

// publish tries to store a message once.
func (n *Grid) publish(ctx context.Context, w *write) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	answer, err := n.conn.RequestMsgWithContext(ctx, w.message())
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error *apiError `json:"error"`
		Seq   uint64    `json:"seq"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, err
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// errOvertaken says that a write took effect, and that another one replaced it already.
var errOvertaken = errors.New("grid: written, and replaced already")

// store writes until the outcome is known: nil, ErrConflict if the subject's last sequence is another one, errOvertaken, or an
// error of kind Unavailable if it could not be stored in time; that is ErrUnknown too if it may have been. m must be the first mark in
// the body.
//
// A refusal is not yet an outcome. Who was the leader, was cut off and does not know yet that there is another one gets every
// message as well, and refuses it before the other one has stored it.
func (n *Grid) store(ctx context.Context, w *write, m mark) (seq uint64, err error) {
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
		seq, err = n.publish(ctx, w)
		last, conflict := refused(err, w.expected)
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
			// A leader that lost its office will know it soon.
		case conflict && last > w.expected:
			seq, err = n.whose(ctx, w, m, last)
			if errors.Is(err, errTooFar) && !unanswered {
				err = grid.ErrConflict // so far that this write, just made, is not behind it
			}
			return seq, err
		case conflict:
			// Either the subject lost what was there, or this server has not heard of it.
			if lost, _ := n.prove(ctx, w.subject, last); lost {
				return 0, grid.ErrConflict
			}
		case hasCode(err, codeTooLarge):
			return 0, freshet.Wrap(freshet.TooLarge, err, "The document is larger than the NATS servers take")
		case slices.ContainsFunc(noRoom, func(code int) bool { return hasCode(err, code) }):
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
		n.lost.Store(true)
		if !pause(ctx, backoff(try)) {
			return 0, giveUp(err)
		}
	}
}

// errTooFar says that the marks do not go back far enough.
var errTooFar = errors.New("the subject moved on too far to tell")

// whose finds out whether a write took effect whose subject has moved on, up to the sequence last at least.
func (n *Grid) whose(ctx context.Context, w *write, m mark, last uint64) (uint64, error) {
	msg, err := n.lastFrom(ctx, w.subject, last)
	if err != nil {
		return 0, unclear(err)
	}
	marks, _, _ := unseal(msg.data) // nothing there, or nothing readable, has no marks
	switch at := slices.Index(marks, m); {
	case at == 0:
		return msg.seq, nil
	case at > 0:
		return 0, errOvertaken
	case w.replaces != 0 && slices.Contains(marks, w.replaces), w.replaces == 0 && len(marks) > 0 && len(marks) < maxMarks:
		return 0, grid.ErrConflict // all writes since are known, and this one is not among them
	}
	if w.by != nil {
		if newest, ok := w.by.newest(msg); ok && newest == m {
			return 0, errOvertaken
		} else if ok {
			return 0, grid.ErrConflict
		}
	}
	return 0, unclear(errTooFar)
}

func isAPI(err error) bool {
	_, ok := errors.AsType[*apiError](err)
	return ok
}

func unknown(err error) error {
	e := freshet.Wrap(freshet.Unavailable, err, "The cluster does not answer, please try again")
	e.RetryAfter = time.Second
	return e
}

// unclear is unknown for a write that may have taken effect.
func unclear(err error) error { return unknown(fmt.Errorf("%w: %w", grid.ErrUnknown, err)) }

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

// message is one of a stream. The zero message means that there is none.
type message struct {
	subject string
	seq     uint64
	data    []byte
	header  nats.Header // nil if none of ours is in it
}

// record reads the message of a topic.
func (m *message) record() (*record, error) {
	rec, err := decodeRecord(m.data)
	if err == nil && m.header != nil {
		rec.trace, rec.outcomes, rec.writers = m.header.Get(traceHeader), grid.ParseOutcomes(m.header.Get(onceHeader)), parseWriters(m.header.Get(writersHeader))
		rec.length = lengthIn(m.header)
	}
	return rec, err
}

// last asks the leader for the newest message of a subject, again and again until it answers.
func (n *Grid) last(ctx context.Context, subject string) (message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream := n.streamOf(subject)
	for try := 0; ; try++ {
		msg, err := n.lastOnce(ctx, stream, subject)
		if err == nil {
			return msg, nil
		}
		n.lost.Store(true)
		if !pause(ctx, backoff(try)) {
			return message{}, unknown(err)
		}
	}
}

// lastFrom is last for a subject that has got as far as a sequence. Who answers with less has not heard of it, unless the subject
// was emptied meanwhile.
func (n *Grid) lastFrom(ctx context.Context, subject string, seq uint64) (message, error) {
	for try := 0; ; try++ {
		msg, err := n.last(ctx, subject)
		if err != nil || msg.seq >= seq {
			return msg, err
		}
		if emptied, err := n.prove(ctx, subject, msg.seq); err == nil && emptied {
			return msg, nil
		}
		if !pause(ctx, backoff(try)) {
			return msg, unknown(ctx.Err())
		}
	}
}

func (n *Grid) lastOnce(ctx context.Context, stream, subject string) (message, error) {
	var answer struct {
		Error   *apiError `json:"error"`
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Header  []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := n.api(ctx, "STREAM.MSG.GET."+stream, map[string]string{"last_by_subj": subject}, &answer)
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	if hasCode(err, codeNoMessage) {
		return message{}, nil
	}
	m := answer.Message
	return message{m.Subject, m.Seq, m.Data, headerIn(m.Header)}, err
}

// headerIn reads headers as they stand on the wire. Most of those that are not of documents have none of ours and are not taken apart.
func headerIn(raw []byte) nats.Header {
	ours := func(name string) bool { return bytes.Contains(raw, []byte(name)) }
	if !slices.ContainsFunc([]string{traceHeader, onceHeader, writersHeader, lengthHeader}, ours) {
		return nil
	}
	header, err := nats.DecodeHeadersMsg(raw)
	if err != nil {
		return nil
	}
	return header
}

func lengthIn(header nats.Header) int {
	n, err := strconv.Atoi(header.Get(lengthHeader))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// api calls JetStream. An error in the answer is the answer's own matter.
func (n *Grid) api(ctx context.Context, name string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return err
		}
	}
	msg, err := n.conn.RequestWithContext(ctx, "$JS.API."+name, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(msg.Data, answer)
}

// batch asks any replica for several messages. What it returns may be older than what the leader has, and upTo says up to
// which sequence it is complete; 0 if nothing was found.
func (n *Grid) batch(ctx context.Context, stream string, request any, each func(message)) (upTo uint64, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return 0, err
	}
	inbox := n.conn.NewRespInbox()
	sub, err := n.conn.SubscribeSync(inbox)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = sub.SetPendingLimits(-1, -1)
	if err := n.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
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
			seq, _ := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
			each(message{msg.Header.Get("Nats-Subject"), seq, msg.Data, msg.Header})
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
