package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/freshet-io/freshet/internal/sse"
)

const (
	defaultSilence = 25 * time.Second
	firstRetry     = time.Second // until the server names another
	maxRetry       = 30 * time.Second
	maxEvent       = 128 << 20 // bytes
)

// Stream is a subscription whose document can be looked at at any time. Its methods are safe for concurrent use, but only
// one loop at a time may range over its events.
type Stream struct {
	// Static after Client.Stream.
	client     *Client
	topicOrURL string
	opts       SubscribeOptions

	busy atomic.Bool
	now  atomic.Pointer[replica]

	// Owned by the loop that ranges over the events.
	retry   time.Duration // what the server wants
	once    time.Duration // what it wants after an error, for the next attempt only; 0 for nothing special
	greeted bool          // it has answered as a stream once
}

// replica is what a subscriber has: a document and its place in the topic's history.
type replica struct {
	doc *jsonpatch.Document // nil while there is none
	id  string
}

// Stream prepares a subscription as Subscribe does. Ranging over its Events starts it; ranging again goes on where the last
// loop stopped.
func (c *Client) Stream(topicOrURL string, o SubscribeOptions) *Stream {
	if o.Silence <= 0 {
		o.Silence = defaultSilence
	}
	s := &Stream{client: c, topicOrURL: topicOrURL, opts: o, retry: firstRetry}
	s.now.Store(&replica{})
	return s
}

// Document is the newest document that was received, as compact JSON; nil while there is none. It is shared: do not modify
// it.
func (s *Stream) Document() []byte {
	if doc := s.now.Load().doc; doc != nil {
		return doc.Bytes()
	}
	return nil
}

// LastEventID is the place of Document in the topic's history.
func (s *Stream) LastEventID() string { return s.now.Load().id }

// Events receives the events, as described at Client.Subscribe.
func (s *Stream) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !s.busy.CompareAndSwap(false, true) {
			yield(Event{}, errors.New("client: only one loop at a time may range over a stream"))
			return
		}
		defer s.busy.Store(false)
		if err := s.run(ctx, func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(Event{}, err)
		}
	}
}

// errStopped means that nobody wants more events.
var errStopped = errors.New("stopped")

// run connects again and again. It returns nil when the loop was left, and otherwise why there will be no more events.
func (s *Stream) run(ctx context.Context, yield func(Event) bool) error {
	at, sign, err := s.prepare()
	if err != nil {
		return err
	}
	for failures := 0; ; {
		s.tell(State{Phase: Connecting})
		received, err := s.connect(ctx, at, sign, yield)
		switch {
		case errors.Is(err, errStopped):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.hopeless(err):
			return err
		}
		failures++
		if received {
			failures = 1
		}
		pause := s.pause(failures)
		s.tell(State{Phase: Waiting, Err: err, Retry: pause})
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

func (s *Stream) tell(state State) {
	if s.opts.OnState != nil {
		s.opts.OnState(state)
	}
}

// pause grows from what the server wants with every failure in a row.
func (s *Stream) pause(failures int) time.Duration {
	if once := s.once; once > 0 {
		s.once = 0
		return jitter(once)
	}
	d := s.retry << min(failures-1, 6)
	return jitter(min(d, max(maxRetry, s.retry)))
}

// hopeless reports whether connecting again would end the same way. A server that answered as a stream before may be
// hidden by a proxy for a moment; one that never did is probably the wrong one.
func (s *Stream) hopeless(err error) bool {
	if e, ok := errors.AsType[*StreamError](err); ok {
		return e.Fatal()
	}
	if s.greeted {
		return false
	}
	if s.opts.FailFast || errors.Is(err, errNoStream) {
		return true
	}
	switch status := StatusOf(err); status {
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return status < 500
	}
}

var errNoStream = errors.New("the answer is no event stream; is this the address of the subscriber interface?")

func (s *Stream) prepare() (at source, sign *signer, err error) {
	if at, err = s.client.locate(s.topicOrURL); err != nil {
		return at, nil, err
	}
	if s.opts.SignatureKey != "" {
		if sign, err = newSigner(s.opts.SignatureKey); err != nil {
			return at, nil, err
		}
	}
	if s.opts.LastEventID == "" || s.LastEventID() != "" {
		return at, sign, nil
	}
	h := &replica{id: s.opts.LastEventID}
	if s.opts.Document != nil {
		if h.doc, err = jsonpatch.Parse(append([]byte(nil), s.opts.Document...), jsonpatch.Limits{}); err != nil {
			return at, nil, fmt.Errorf("client: Document: %w", err)
		}
	} else if s.opts.Mode == Patches {
		return at, nil, errors.New("client: LastEventID needs the Document that it stands for")
	}
	s.now.Store(h)
	return at, sign, nil
}

// request asks for everything after what the client has.
func (s *Stream) request(ctx context.Context, at source, sign *signer) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url, nil)
	if err != nil {
		return nil, fmt.Errorf("client: the URL cannot be requested: %w", errors.Unwrap(err))
	}
	for name, values := range s.opts.Headers {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	set("User-Agent", s.client.userAgent)
	set("Accept", map[Mode]string{Patches: sse.ContentType, Snapshots: "application/json"}[s.opts.Mode])
	set("Cache-Control", "no-cache")
	set("X-Sd-Subscriber-Key", s.opts.Key)
	set("X-Sd-Filter", strings.Join(s.opts.Filter, ","))
	set("Last-Event-ID", s.LastEventID())
	set("Accept-Encoding", "identity") // else the HTTP library asks for gzip, and hides it
	if s.opts.Compress {
		set("X-Sd-Compress", "true")
		set("Accept-Encoding", "gzip")
	}
	if sign != nil {
		stamp, signature := sign.sign(at.signed, time.Now())
		set("X-Auth-Sd-Ts", stamp)
		set("X-Auth-Sd-S", signature)
	}
	return req, nil
}

// connect follows one connection to its end and says whether it brought anything.
func (s *Stream) connect(ctx context.Context, at source, sign *signer, yield func(Event) bool) (received bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatchdog(s.opts.Silence, cancel)
	defer watch.rest()

	req, err := s.request(ctx, at, sign)
	if err != nil {
		return false, err
	}
	watch.wake()
	resp, err := s.client.http.Do(req)
	watch.rest()
	if err != nil {
		return false, unreachable(s.client.subscriber, orCause(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	if err := checkStream(resp); err != nil {
		return false, err
	}
	s.greeted = true
	s.tell(State{Phase: Open})
	body := io.Reader(&watched{resp.Body, watch})
	if resp.Header.Get("Content-Encoding") == "gzip" {
		body = &gunzip{src: body}
	}
	if s.opts.OnBytes != nil {
		body = &tapped{body, s.opts.OnBytes}
	}
	received, err = s.follow(sse.NewReader(body, maxEvent), yield)
	if ctx.Err() != nil && !errors.Is(err, errStopped) {
		err = context.Cause(ctx)
	}
	return received, err
}

func checkStream(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is of it has to do
		return responseError(resp, text)
	}
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mediaType != sse.ContentType {
		return errNoStream
	}
	return nil
}

// follow takes events until there are no more on this connection.
func (s *Stream) follow(events *sse.Reader, yield func(Event) bool) (received bool, err error) {
	for {
		raw, err := events.Next()
		if err != nil {
			return received, err
		}
		if raw.Retry > 0 && raw.Name == "error" {
			s.once = raw.Retry
		} else if raw.Retry > 0 {
			s.retry = raw.Retry
		}
		if raw.Data == nil {
			continue
		}
		e, err := s.take(raw)
		if err != nil {
			return received, err
		}
		if e.Kind == "" {
			continue
		}
		received = received || e.Kind != Failure
		if !yield(e) {
			return received, errStopped
		}
	}
}

// take brings the replica up to date. Events of kinds that nobody knows yet have an empty Kind.
func (s *Stream) take(raw sse.Event) (Event, error) {
	e := Event{ID: raw.ID, Data: raw.Data}
	was := s.now.Load()
	var doc *jsonpatch.Document
	var err error
	switch raw.Name {
	case "snapshot", "data":
		e.Kind = Snapshot
		// The reader gave the data away, and nobody may change an event's: so the document may keep it.
		if doc, err = jsonpatch.ParseNext(was.doc, raw.Data, jsonpatch.Limits{}); err != nil {
			return e, s.lost(fmt.Errorf("a snapshot cannot be read: %w", err))
		}
	case "patch":
		e.Kind = Patch
		if was.doc == nil {
			return e, s.lost(errors.New("a patch came before any document"))
		}
		if doc, err = jsonpatch.Apply(was.doc, raw.Data, jsonpatch.Limits{}); err != nil {
			return e, s.lost(fmt.Errorf("a patch does not fit: %w", err))
		}
	case "error":
		return s.failure(e, was, raw.Retry > 0)
	default:
		return Event{}, nil
	}
	s.now.Store(&replica{doc: doc, id: raw.ID})
	e.Document = doc.Bytes()
	return e, nil
}

// lost forgets the place, so that the next connection begins with a snapshot.
func (s *Stream) lost(err error) error {
	s.now.Store(&replica{doc: s.now.Load().doc})
	return err
}

// failure reads an error. Those that end the stream say when to come back; a polled topic that is over its quota goes on.
func (s *Stream) failure(e Event, was *replica, ends bool) (Event, error) {
	var f StreamError
	if err := json.Unmarshal(e.Data, &f); err != nil || f.Code == 0 {
		return Event{}, fmt.Errorf("an error event cannot be read: %s", e.Data)
	}
	if f.Fatal() && (ends || f.Code != TopicGone) {
		return Event{}, &f
	}
	e.Kind, e.Err = Failure, &f
	if was.doc != nil {
		e.Document = was.doc.Bytes()
	}
	return e, nil
}
