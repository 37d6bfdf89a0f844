package poll

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/trace"
)

// fire runs when a poll is due, in a goroutine of its own, which goes on to be that of the request.
func (s *source) fire() {
	s.mu.Lock()
	if s.stopped != running || s.busy || s.plan == nil || s.p.closed.Load() {
		s.mu.Unlock()
		return
	}
	s.busy, s.again = true, false
	s.attempt.host = s.plan.endpoint.host
	s.p.working.Add(1)
	s.mu.Unlock()
	if s.p.hosts.acquire(s.attempt.host, s) {
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
	now, stopped, due := s.plan, s.stopped, s.schedule.due
	s.mu.Unlock()
	s.attempt.began = time.Now()
	s.p.stats.late(s.attempt.began.Sub(due))
	var got *response
	var err error
	s.attempt.span = s.p.opts.Tracer.Start("poll", trace.Client, trace.Parent{})
	s.attempt.span.Set("freshet.topic", s.id)
	asks := stopped == running && s.p.leases.holds(shardOf(s.id)) // whoever has the lease asks
	if asks {
		asking := s.attempt.span.Child("ask", trace.Client)
		got, err = s.p.fetcher.fetch(s.p.ctx, s.request(now))
		asking.End()
	}
	if next := s.shard.requests.release(); next != nil {
		go next.poll()
	}
	if next := s.p.hosts.release(s.attempt.host); next != nil {
		go next.proceed()
	}
	pause := now.every
	if asks {
		pause = s.settle(now, got, err)
	}
	s.attempt.span.End()
	s.attempt.span = nil
	s.rest(now, pause)
}

// request is what is asked by the plan.
func (s *source) request(now *plan) *request {
	q := &request{endpoint: now.endpoint}
	q.etag, q.lastModified = s.validators.next(time.Now(), s.p.opts.MessageTTL)
	return q
}

// settle takes the answer to a question that was asked by the plan, and returns the pause until the next. An answer that
// came too late to be ours to publish is dropped.
func (s *source) settle(asked *plan, got *response, err error) time.Duration {
	if !s.stillMine(asked) {
		return s.drop(asked)
	}
	ctx, cancel := context.WithTimeout(trace.With(s.p.ctx, s.attempt.span), loadTimeout)
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
		s.health.succeed()
		s.health.outage.end(ctx, s.p.outages, "data source answers again")
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
	s.validators.forget()
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
			s.validators.forget()
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
		s.validators.forget()
		return freshet.Wrap(freshet.SourceUnreadable, err, unreadableText(err))
	case freshet.DocumentLimit:
		s.validators.forget()
		return freshet.Wrap(freshet.DocumentLimit, err, "The newest document of the data source is more than the quota document_bytes allows")
	}
	if err != nil {
		s.validators.forget()
		return err
	}
	s.validators.keep(got, s.attempt.began)
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

// fail counts the failure, tells subscribers if it is time, and returns how long to leave the target alone.
func (s *source) fail(ctx context.Context, asked *plan, err error) time.Duration {
	e := asError(err)
	pause := s.health.fail(e, asked.every, s.attempt.began, time.Now())
	refused := e.Kind == freshet.SourceUnauthorized || e.Kind == freshet.SourceForbidden || e.Kind == freshet.SourceExpired
	final := refused && asked.topic.AutoProvisioned
	empty := s.writer.IsEmpty()
	if !empty && !final && s.health.failures < s.p.opts.ErrorThreshold {
		return pause
	}
	s.health.outage.tell(ctx, s.p.outages, &freshet.SourceFailure{Kind: e.Kind, Msg: e.Msg, Since: s.health.outage.since, Fatal: empty || final}, pause)
	return pause
}

// rest ends the poll and arranges the next.
func (s *source) rest(asked *plan, pause time.Duration) {
	s.mu.Lock()
	s.busy = false
	once := s.attendance.isOnce()
	switch {
	case s.stopped != running:
		s.mu.Unlock()
		s.finish()
		return
	case s.attendance.parked: // somebody had it refreshed; nobody listens
		s.mu.Unlock()
		return
	case once && !s.again:
		s.stopped = left
		s.mu.Unlock()
		s.stop(left) // it was polled because somebody asked for that, not because somebody listens
		return
	case s.again || s.plan != asked && !s.plan.endpoint.same(asked.endpoint):
		s.pollAfter(0)
	default:
		if s.plan.every != asked.every {
			pause = min(pause, s.plan.every)
		}
		delay := s.schedule.after(s.attempt.began, time.Now(), pause, s.plan.every)
		s.pollAfter(max(delay, time.Until(s.health.notBefore)))
	}
	s.mu.Unlock()
}

func isSourceFailure(err error) bool {
	switch freshet.KindOf(err) {
	case freshet.SourceFailed, freshet.SourceUnreachable, freshet.SourceUnauthorized, freshet.SourceForbidden,
		freshet.SourceExpired, freshet.SourceUnknownHost, freshet.SourceUnreadable, freshet.DocumentLimit:
		return true
	}
	return false
}
