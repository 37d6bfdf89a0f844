package poll

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/trace"
)

// How often a poll asks for the whole document although the last one may still be good: against servers whose validators
// are stuck, and so that a document that never changes does not expire.
const (
	fullEvery  = 60
	fullWithin = 10 * time.Minute
)

// Bounds of the pause after failures.
const longestBackOff = time.Minute

// jitter is by which part of itself an interval is varied, to drive apart what began together.
const jitter = 0.05

// fire runs when a poll is due, in a goroutine of its own, which goes on to be that of the request.
func (s *source) fire() {
	s.mu.Lock()
	if s.stopped != running || s.busy || s.plan == nil || s.p.closed.Load() {
		s.mu.Unlock()
		return
	}
	s.busy, s.again = true, false
	s.host = s.plan.endpoint.host
	s.p.working.Add(1)
	s.mu.Unlock()
	if s.p.hosts.acquire(s.host, s) {
		s.proceed()
	}
}

// proceed has a place at its host.
func (s *source) proceed() {
	if s.shard.requests.acquire(s) {
		s.poll()
	}
}

// poll has every place it needs. It asks, takes the answer, gives the places back and arranges what comes next.
func (s *source) poll() {
	defer s.p.working.Done()
	s.mu.Lock()
	now, stopped, due := s.plan, s.stopped, s.due
	s.mu.Unlock()
	s.began = time.Now()
	s.p.stats.late(s.began.Sub(due))
	var got *response
	var err error
	s.span = s.p.opts.Tracer.Start("poll", trace.Client, trace.Parent{})
	s.span.Set("freshet.topic", s.id)
	asks := stopped == running && s.p.leases.holds(shardOf(s.id)) // whoever has the lease asks
	if asks {
		asking := s.span.Child("ask", trace.Client)
		got, err = s.p.fetcher.fetch(s.p.ctx, s.request(now))
		asking.End()
	}
	if next := s.shard.requests.release(); next != nil {
		go next.poll()
	}
	if next := s.p.hosts.release(s.host); next != nil {
		go next.proceed()
	}
	pause := now.every
	if asks {
		pause = s.settle(now, got, err)
	}
	s.span.End()
	s.span = nil
	s.rest(now, pause)
}

// request decides between a conditional request and a full one.
func (s *source) request(now *plan) *request {
	within := fullWithin
	if ttl := s.p.opts.MessageTTL; ttl > 0 {
		within = min(within, ttl/4)
	}
	q := &request{endpoint: now.endpoint}
	if s.polls++; s.polls >= fullEvery || time.Since(s.fullAt) >= within {
		s.polls = 0
		return q
	}
	q.etag, q.lastModified = s.etag, s.lastModified
	return q
}

// settle takes the answer to a question that was asked by the plan, and returns the pause until the next. An answer that
// came too late to be ours to publish is dropped.
func (s *source) settle(asked *plan, got *response, err error) time.Duration {
	if !s.stillMine(asked) {
		return s.drop(asked)
	}
	ctx, cancel := context.WithTimeout(trace.With(s.p.ctx, s.span), loadTimeout)
	defer cancel()
	s.setAbandon(cancel)
	defer s.setAbandon(nil)
	if err == nil {
		err = s.take(ctx, asked, got)
	}
	switch {
	case err != nil && !s.stillMine(asked):
		return s.drop(asked)
	case err == nil:
		s.failures, s.notBefore = 0, time.Time{}
		s.outage.end(ctx, s, "data source answers again")
		return vary(asked.every)
	case s.p.ctx.Err() != nil:
		return asked.every
	case !isSourceFailure(err):
		s.tell(asked, unpublished)
		s.p.log.Warn("polled document not published", "topic", s.id, "err", err)
		return vary(asked.every)
	}
	s.tell(asked, failed)
	return s.fail(ctx, asked, err)
}

// drop lets an answer go that is not ours to publish.
func (s *source) drop(asked *plan) time.Duration {
	s.tell(asked, dropped)
	s.etag, s.lastModified = "", ""
	return asked.every
}

func (s *source) setAbandon(f context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandon = f
}

// stillMine reports whether the topic is still ours, and still what was asked for.
func (s *source) stillMine(asked *plan) bool {
	s.mu.Lock()
	same := s.stopped == running && (s.plan == asked || s.plan.endpoint.same(asked.endpoint))
	s.mu.Unlock()
	return same && s.p.leases.holds(shardOf(s.id))
}

// take publishes the answer.
func (s *source) take(ctx context.Context, asked *plan, got *response) error {
	if got.notModified {
		s.tell(asked, unmodified)
		if s.writer.IsEmpty() {
			// What the target says we have was lost meanwhile: ask for all of it.
			s.forget()
			s.mu.Lock()
			s.again = true
			s.mu.Unlock()
		}
		return nil
	}
	out, err := s.writer.Publish(ctx, router.Publication{
		Body: got.body, Quota: asked.quota, Gone: func() bool { return !s.stillMine(asked) },
	})
	switch freshet.KindOf(err) {
	case freshet.Invalid, freshet.TooLarge:
		s.forget()
		return freshet.Wrap(freshet.SourceUnreadable, err, unreadableText(err))
	case freshet.DocumentLimit:
		s.forget()
		return freshet.Wrap(freshet.DocumentLimit, err, "The newest document of the data source is more than the quota document_bytes allows")
	}
	if err != nil {
		s.forget()
		return err
	}
	s.etag, s.lastModified, s.fullAt, s.polls = got.etag, got.lastModified, s.began, 0
	if out.Changed {
		s.tell(asked, changed)
	} else {
		s.tell(asked, unchanged)
	}
	return nil
}

// unreadableText says what is wrong with a document without quoting it: errors of the router speak of a body that somebody
// sent, and of its content.
func unreadableText(err error) string {
	if freshet.KindOf(err) == freshet.TooLarge {
		return "The answer of the data source is too large for the topic"
	}
	return "The answer of the data source is not JSON that the topic can take"
}

func (s *source) forget() { s.etag, s.lastModified, s.polls = "", "", 0 }

// fail counts the failure, tells subscribers if it is time, and returns how long to leave the target alone.
func (s *source) fail(ctx context.Context, asked *plan, err error) time.Duration {
	e := asError(err)
	s.failures++
	pause := vary(backOff(asked.every, s.failures))
	if e.RetryAfter > 0 {
		pause = max(e.RetryAfter, asked.every)
		s.notBefore = time.Now().Add(e.RetryAfter)
	}
	s.outage.begin(s.began)
	refused := e.Kind == freshet.SourceUnauthorized || e.Kind == freshet.SourceForbidden || e.Kind == freshet.SourceExpired
	final := refused && asked.topic.AutoProvisioned
	empty := s.writer.IsEmpty()
	if !empty && !final && s.failures < s.p.opts.ErrorThreshold {
		return pause
	}
	s.outage.tell(ctx, s, &freshet.SourceFailure{Kind: e.Kind, Msg: e.Msg, Since: s.outage.since, Fatal: empty || final}, pause)
	return pause
}

// backOff doubles the pause with every failure in a row. It never polls more often than the topic would.
func backOff(every time.Duration, failures int) time.Duration {
	pause := every
	for i := 1; i < failures && pause < longestBackOff; i++ {
		pause *= 2
	}
	return max(every, min(pause, longestBackOff))
}

// vary changes a pause a little.
func vary(d time.Duration) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*jitter*float64(d))
}

// rest ends the poll and arranges the next.
func (s *source) rest(asked *plan, pause time.Duration) {
	s.mu.Lock()
	s.busy = false
	once := !s.present && s.leaving == nil
	switch {
	case s.stopped != running:
		s.mu.Unlock()
		s.finish()
		return
	case s.parked: // somebody had it refreshed; nobody listens
		s.mu.Unlock()
		return
	case once && !s.again:
		s.stopped = left
		s.mu.Unlock()
		s.stop(left) // it was polled because somebody asked for that, not because somebody listens
		return
	case s.again || s.plan != asked && !s.plan.endpoint.same(asked.endpoint):
		s.schedule(0)
	default:
		if s.plan.every != asked.every {
			pause = min(pause, s.plan.every)
		}
		if s.spread {
			s.spread = false
			pause += rand.N(s.plan.every) - s.plan.every/2
		}
		// A slow target gets a pause all the same.
		left := max(time.Until(s.base())+pause, min(pause, s.plan.every)/4)
		s.schedule(max(left, time.Until(s.notBefore)))
	}
	s.mu.Unlock()
}

// crowded is how late a poll is that had to wait for its turn, and not just for a processor.
const crowded = 10 * time.Millisecond

// base is from when the next poll is counted. Being a little late does not add up. But whoever had to wait for his turn moves
// part of the way towards it: those that were due together and were served one after the other are apart from then on, and
// so are those that were due one after the other and were served together, after a stall. The caller holds mu.
func (s *source) base() time.Time {
	if late := s.began.Sub(s.due); late > crowded {
		return s.due.Add(rand.N(late))
	}
	return s.due
}

func isSourceFailure(err error) bool {
	switch freshet.KindOf(err) {
	case freshet.SourceFailed, freshet.SourceUnreachable, freshet.SourceUnauthorized, freshet.SourceForbidden,
		freshet.SourceExpired, freshet.SourceUnknownHost, freshet.SourceUnreadable, freshet.DocumentLimit:
		return true
	}
	return false
}

func sameCredentials(a, b *freshet.Credentials) bool {
	if !slices.Equal(a.Headers, b.Headers) || (a.OAuth2 == nil) != (b.OAuth2 == nil) {
		return false
	}
	if a.OAuth2 == nil {
		return true
	}
	x, y := a.OAuth2, b.OAuth2
	return x.TokenURL == y.TokenURL && x.ClientID == y.ClientID && x.ClientSecret == y.ClientSecret && slices.Equal(x.Scopes, y.Scopes)
}
