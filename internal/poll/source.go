package poll

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/trace"
)

// source is one topic that is polled here.
type source struct {
	// Static.
	p     *Poller
	shard *shard
	id    string

	// Guarded by mu.
	mu       sync.Mutex
	plan     *plan // nil until the catalog told
	loading  bool  // the catalog is being asked
	reload   bool  // ask once more after that
	why      reason
	present  bool        // somebody is subscribed
	leaving  *time.Timer // runs while nobody is
	timer    *time.Timer // of the next poll
	due      time.Time
	busy     bool // a poll waits for its turn or is under way
	again    bool // poll once more right after it
	spread   bool // it began in a crowd, and leaves it with its second poll
	parked   bool // kept only to remember what the target asked for
	stopped  ending
	finished bool
	abandon  context.CancelFunc // of the publication under way; nil if there is none

	// Owned by whoever made it busy.
	host         string // whose place it has
	began        time.Time
	span         *trace.Span // of the poll under way; nil: nobody follows it
	etag         string
	lastModified string
	polls        int       // since the last full request
	fullAt       time.Time // when that was
	failures     int       // in a row
	outage       outage
	notBefore    time.Time // the target's wish
	writer       *router.Writer
}

// plan is what the catalog says about a topic. It never changes: another one takes its place.
type plan struct {
	topic    freshet.Topic
	endpoint *endpoint
	every    time.Duration
	userID   string
	quota    router.Quota // nil: nothing limits its documents
}

// ending is why a source is no more.
type ending int

const (
	running ending = iota
	left           // nobody is subscribed any more
	gone           // the topic was deleted, or is not polled
	lost           // another node polls it now
)

func newSource(p *Poller, sh *shard, id string, why reason) *source {
	return &source{p: p, shard: sh, id: id, why: why, present: why != refresh}
}

// loadTimeout bounds a question to the catalog or the grid.
const loadTimeout = 10 * time.Second

// load asks the catalog where the content comes from, at first and whenever that may have changed. It asks one question at a time:
// of two the older answer could come last.
func (s *source) load() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reload = true
	if s.loading {
		return
	}
	s.loading = true
	for s.reload && s.stopped == running {
		s.reload = false
		s.mu.Unlock()
		s.loadOnce()
		s.mu.Lock()
	}
	s.loading = false
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
	var o outage
	o.tell(ctx, s, &f, time.Minute)
}

func (s *source) loadAgain() {
	const pause = time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == running && s.plan == nil && s.timer == nil {
		time.AfterFunc(pause+rand.N(pause), func() { s.p.later(s.load) })
	}
}

// adopt takes the catalog's answer and arranges the next poll: now for whoever waits, spread over the interval for those
// that come in crowds.
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
		s.schedule(delay)
	case !before.endpoint.same(t):
		s.pollNow()
	case before.every != next.every && !s.busy:
		s.schedule(min(time.Until(s.due), next.every))
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

// schedule arms the timer. What is due needs none: if several goroutines of a test's bubble make timers that fire at once, Go's race
// detector breaks down (1.26). The caller holds mu.
func (s *source) schedule(delay time.Duration) {
	s.due = time.Now().Add(max(0, delay))
	switch {
	case delay <= 0:
		if s.timer != nil {
			s.timer.Stop()
		}
		go s.fire()
	case s.timer == nil:
		s.timer = time.AfterFunc(delay, s.fire)
	default:
		s.timer.Reset(delay)
	}
}

// pollNow polls without waiting for the timer, or right after the poll under way. The caller holds mu.
func (s *source) pollNow() {
	if s.busy {
		s.again = true
		return
	}
	s.schedule(0)
}

// arrive is told that somebody is interested. It returns false if that comes too late.
func (s *source) arrive(why reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != running {
		return false
	}
	if why == refresh {
		if s.plan != nil {
			s.pollNow()
		}
		return true
	}
	s.present = true
	if s.leaving != nil {
		s.leaving.Stop()
		s.leaving = nil
	}
	if s.parked {
		s.parked = false
		if !s.busy { // otherwise the poll under way arranges what comes next
			s.schedule(time.Until(s.notBefore))
		}
		s.p.later(s.load) // much may have changed
	}
	return true
}

func (s *source) isParked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked
}

// leave is told that nobody is subscribed any more.
func (s *source) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = false
	if s.leaving == nil && s.stopped == running {
		s.leaving = time.AfterFunc(s.p.opts.Grace, func() { s.p.later(s.giveUp) })
	}
}

// giveUp ends the source unless somebody came back: what the grid tells is a hint, what it answers is the truth.
func (s *source) giveUp() {
	ctx, cancel := context.WithTimeout(s.p.ctx, loadTimeout)
	defer cancel()
	here, err := s.p.grid.Present(ctx, s.id)
	s.mu.Lock()
	if s.leaving == nil || s.present {
		s.mu.Unlock()
		return
	}
	s.leaving = nil
	if err != nil || here {
		s.present = true
		s.mu.Unlock()
		if err != nil {
			s.leave() // and ask again
		}
		return
	}
	if s.busy { // its owner may be about to change what we need to know
		s.leaving = time.AfterFunc(time.Second, func() { s.p.later(s.giveUp) })
		s.mu.Unlock()
		return
	}
	if wait := time.Until(s.notBefore); wait > 0 {
		// Whoever comes back must not make us forget what the target asked for.
		s.park(wait)
		s.mu.Unlock()
		s.retire(ctx)
		return
	}
	s.stopped = left // now: whoever comes must not rely on it
	s.mu.Unlock()
	s.stop(left)
}

// park keeps the source without polling. The caller holds mu.
func (s *source) park(wait time.Duration) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.parked = true
	s.leaving = time.AfterFunc(wait, func() { s.p.later(s.giveUp) })
}

// stop ends the source. What must be put in order is done at once, or by the poll under way.
func (s *source) stop(why ending) {
	s.mu.Lock()
	if s.stopped == running {
		s.stopped = why
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.leaving != nil {
		s.leaving.Stop()
		s.leaving = nil
	}
	if why == lost && s.abandon != nil {
		s.abandon() // its successor publishes
	}
	busy := s.busy
	s.mu.Unlock()
	s.shard.mu.Lock()
	if s.shard.sources[s.id] == s {
		delete(s.shard.sources, s.id)
	}
	s.shard.mu.Unlock()
	if !busy {
		s.finish()
	}
}

// finish puts everything in order, once.
func (s *source) finish() {
	s.mu.Lock()
	writer, why, done := s.writer, s.stopped, s.finished
	s.finished = true
	s.mu.Unlock()
	if done {
		return
	}
	if writer != nil {
		writer.Close()
	}
	if why == lost {
		return // its successor looks after the rest
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.p.ctx), loadTimeout)
	defer cancel()
	s.outage.end(ctx, s, "data source that failed is not asked any more")
	if why == left {
		s.retire(ctx)
	}
}

// retire deletes the topic if its subscribers made it.
func (s *source) retire(ctx context.Context) {
	s.mu.Lock()
	auto := s.plan != nil && s.plan.topic.AutoProvisioned
	s.mu.Unlock()
	if !auto {
		return
	}
	err := s.p.catalog.Retire(ctx, s.id, func(ctx context.Context) (bool, error) { return s.p.grid.Present(ctx, s.id) })
	if err != nil && s.p.ctx.Err() == nil {
		s.p.log.Warn("topic without subscribers stays for now", "topic", s.id, "err", err) // a later sweep finds it
	}
}

// belongsTo reports whether the source is of the app or the user.
func (s *source) belongsTo(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan == nil || s.plan.topic.AppID == id || s.plan.userID == id
}

// same reports whether both ask the same in the same way.
func (t *endpoint) same(other *endpoint) bool {
	return *t.url == *other.url && sameCredentials(&t.credentials, &other.credentials) && slices.Equal(t.allowedHosts, other.allowedHosts)
}
