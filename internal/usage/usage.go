// Package usage counts what is used: messages, bytes, publications, polls and connected time, by topic and hour, and the
// messages of an account and of an app in a month, which may be limited.
//
// Whoever delivers keeps its own tallies and hands them over now and then ([Counter.Sent]); the meter adds them up in memory
// and writes the sums down every few seconds, so a delivery never costs a write. A crash loses what was counted since the last
// flush; nothing is ever added twice. It deliberately does not decide what happens when a quota is used up: it says so.
//
// A [Storage] holds documents against quotas of bytes. What is stored can be counted again at any time, so it writes nothing down.
//
// A Meter is safe for concurrent use. Locks are taken in the order flushing, folding, mu, Counter.mu, bin.mu.
package usage

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// Place is where something is used: a topic, and what it belongs to.
type Place struct{ TopicID, AppID, UserID string }

// Options are the settings of a Meter. Zero values mean the defaults.
type Options struct {
	Log *slog.Logger

	// Flush is how often sums are written down; 10 s by default. It bounds what a crash loses.
	Flush time.Duration

	// Retention is how long hours are kept; 90 days by default.
	Retention time.Duration

	// Write writes a batch down where this process may not; nil where it may. A batch may come twice, with the same number.
	Write func(context.Context, *store.UsageBatch) error
}

const (
	defaultFlush     = 10 * time.Second
	defaultRetention = 90 * 24 * time.Hour
	foldEvery        = time.Second // how late a used up quota may be noticed
	pruneEvery       = time.Hour
	flushTimeout     = 30 * time.Second
)

// Meter adds up usage.
type Meter struct {
	// Static after New.
	store     *store.Store
	log       *slog.Logger
	every     time.Duration
	retention time.Duration
	write     func(context.Context, *store.UsageBatch) error
	writesOwn bool // it may write, and so forgets old hours as well
	writer    string
	done      chan struct{}
	finished  chan struct{}
	ctx       context.Context // of what is read in the background
	cancel    context.CancelFunc

	background sync.WaitGroup // of what is read there
	bins       sums

	// flushing is held while sums move from memory to the store, so that whoever reads both sees each of them once.
	flushing sync.RWMutex
	batches  []*store.UsageBatch // made and not yet known to be written; guarded by flushing
	number   int64               // of the last batch; guarded by flushing

	folding sync.Mutex // held while counters are read out
	folded  time.Time  // until when connected time is counted; guarded by folding

	// Guarded by mu.
	mu       sync.Mutex
	live     map[*Counter]struct{}
	dirty    []*Counter // with something to read out
	accounts map[Owner]*account
	spent    func(Owner)

	consulting map[Owner]chan struct{} // reads under way; each is closed when it ended
	slow       bool                    // the store was away, or took longer than patience, and has not answered since

	failures atomic.Uint64
}

// New starts a Meter over the store. Close it after use, before the store.
func New(s *store.Store, opts Options) *Meter {
	m := &Meter{
		store: s, log: opts.Log, every: opts.Flush, retention: opts.Retention, writer: freshet.NewID(),
		done: make(chan struct{}), finished: make(chan struct{}), folded: time.Now(),
		live: make(map[*Counter]struct{}), accounts: make(map[Owner]*account), consulting: make(map[Owner]chan struct{}),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.every <= 0 {
		m.every = defaultFlush
	}
	if m.retention <= 0 {
		m.retention = defaultRetention
	}
	if m.write, m.writesOwn = opts.Write, opts.Write == nil; m.writesOwn {
		m.write = func(ctx context.Context, b *store.UsageBatch) error { return AddUsage(ctx, s, b) }
	}
	m.bins.init()
	go m.run()
	return m
}

// Close writes down what was counted.
func (m *Meter) Close(ctx context.Context) error {
	close(m.done)
	<-m.finished
	m.mu.Lock()
	m.cancel() // under the lock: nothing begins to be read after this
	m.mu.Unlock()
	m.background.Wait()
	return m.Flush(ctx)
}

// Add counts something that happened now.
func (m *Meter) Add(at Place, u freshet.Usage) { m.bins.add(at, hourOf(time.Now()), u) }

// Failures is how often sums could not be written down; they were kept for the next time.
func (m *Meter) Failures() uint64 { return m.failures.Load() }

func (m *Meter) run() {
	defer close(m.finished)
	fold, flush, prune := time.NewTicker(foldEvery), time.NewTicker(max(m.every/steps, 1)), time.NewTicker(pruneEvery)
	var due schedule
	defer fold.Stop()
	defer flush.Stop()
	defer prune.Stop()
	for {
		select {
		case <-m.done:
			return
		case now := <-fold.C:
			m.fold(now)
			m.tellSpent(now)
			m.flushNear(now)
			m.tellSpent(now)
		case <-flush.C:
			ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
			if err := m.flushStep(ctx, &due); err != nil && !freshet.IsLogged(err) {
				m.log.Warn("usage could not be written down; it is kept for the next time", "err", err)
			}
			cancel()
		case <-prune.C:
			m.prune(m.store.Now()) // not by a clock that is months ahead
		}
	}
}

// AddUsage writes a batch of any process down.
func AddUsage(ctx context.Context, s *store.Store, b *store.UsageBatch) error {
	b.At = s.Now()
	return s.Update(ctx, func(tx *store.Tx) error { return tx.AddUsage(b) })
}

func (m *Meter) prune(now time.Time) {
	if !m.writesOwn {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	err := m.store.Update(ctx, func(tx *store.Tx) error { return tx.PruneUsage(now.Add(-m.retention)) })
	if err != nil && !freshet.IsLogged(err) {
		m.log.Warn("old usage could not be forgotten", "err", err)
	}
}

func hourOf(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }
