package poll

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/router"
)

// plan is what the catalog says about a topic. It never changes: another one takes its place.
type plan struct {
	topic    freshet.Topic
	endpoint *endpoint
	every    time.Duration
	userID   string
	quota    router.Quota // nil: nothing limits its documents
}

// lookup is the question to the catalog, one at a time: of two the older answer could come last. It is guarded by source.mu.
type lookup struct {
	running bool
	again   bool // ask once more after that
}

// begin asks for a lookup, and reports whether the caller has to do it. Then it does, as long as next says so.
func (l *lookup) begin() bool {
	l.again = true
	if l.running {
		return false
	}
	l.running = true
	return true
}

// next reports whether the catalog has to be asked, once more.
func (l *lookup) next(wanted bool) bool {
	if l.running = l.again && wanted; l.running {
		l.again = false
	}
	return l.running
}

// loadTimeout bounds a question to the catalog or the grid.
const loadTimeout = 10 * time.Second

// load asks the catalog where the content comes from, at first and whenever that may have changed. It asks one question at a time:
// of two the older answer could come last.
func (s *source) load() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lookup.begin() {
		return
	}
	for s.lookup.next(s.stopped == running) {
		s.mu.Unlock()
		s.loadOnce()
		s.mu.Lock()
	}
}

func (s *source) loadOnce() {
	ctx, cancel := context.WithTimeout(s.p.ctx, loadTimeout)
	defer cancel()
	found, err := s.p.catalog.Source(ctx, s.id)
	if err == nil {
		err = s.adopt(ctx, found)
	}
	switch freshet.KindOf(err) {
	case freshet.NotFound, freshet.TopicNotFound:
		if !s.isParked() {
			s.stop(gone)
		}
	case freshet.TopicGone:
		s.p.log.Error("topic cannot be polled", "topic", s.id, "err", err)
		s.condemn(ctx, err)
	default:
		if err != nil && s.p.ctx.Err() == nil {
			s.p.log.Warn("topic cannot be looked up; trying again", "topic", s.id, "err", err)
			s.loadAgain()
		}
	}
}

// condemn ends the source of a topic that nobody can poll, and says so to whoever subscribes in the next minute.
func (s *source) condemn(ctx context.Context, err error) {
	s.stop(gone)
	f := freshet.SourceFailure{Kind: freshet.TopicGone, Msg: asError(err).Msg, Since: time.Now(), Fatal: true}
	o := outage{topicID: s.id}
	o.tell(ctx, s.p.outages, &f, time.Minute)
}

func (s *source) loadAgain() {
	const pause = time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == running && s.plan == nil && s.schedule.timer == nil {
		time.AfterFunc(pause+rand.N(pause), func() { s.p.later(s.load) })
	}
}

// adopt takes the catalog's answer and arranges the next poll: now for whoever waits, spread over the interval for those
// that come in bursts.
func (s *source) adopt(ctx context.Context, found *catalog.Source) error {
	t, err := newEndpoint(&found.Topic, found.AllowedHosts)
	if err != nil {
		return freshet.Wrap(freshet.NotFound, err, "not a target")
	}
	next := &plan{topic: found.Topic, endpoint: t, every: *found.Topic.Publisher.PollEvery, userID: found.UserID}
	if s.p.opts.Quota != nil {
		next.quota = s.p.opts.Quota(found)
	}
	writer, err := s.openWriter(ctx, &next.topic)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.stopped != running {
		s.mu.Unlock()
		if writer != nil {
			writer.Close()
		}
		return nil
	}
	defer s.mu.Unlock()
	if writer != nil {
		s.writer = writer
	}
	before := s.plan
	s.plan = next
	switch {
	case before == nil:
		delay := time.Duration(0)
		if s.why == takeover {
			delay = rand.N(next.every)
		}
		s.pollAfter(delay)
	case !before.endpoint.same(t):
		s.pollNow()
	case before.every != next.every && !s.busy:
		s.pollAfter(min(time.Until(s.schedule.due), next.every))
	}
	return nil
}

// openWriter opens the router's writer if the source has none yet.
func (s *source) openWriter(ctx context.Context, topic *freshet.Topic) (*router.Writer, error) {
	s.mu.Lock()
	has := s.writer != nil
	s.mu.Unlock()
	if has {
		return nil, nil
	}
	return s.p.router.OpenWriter(ctx, topic)
}
