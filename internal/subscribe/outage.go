package subscribe

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/sse"
)

// Sources tells what is wrong with the data sources of topics. The grid is one.
type Sources interface {
	Value(ctx context.Context, name string) (string, error)
}

// sourceFeed is the feed of a polled topic: the frames of its documents, and in between, once per outage, that its data
// source fails. Its cursors hold both: where the reader is in the documents, and of how many outages it was told.
type sourceFeed struct {
	*router.Feed
	legacy     bool
	compressed bool

	now atomic.Pointer[outage] // nil: there was none yet

	mu      sync.Mutex
	watches map[*func()]struct{} // Guarded by mu.
}

// outage is one outage of a data source. It never changes.
type outage struct {
	number uint16
	since  time.Time
	frame  []byte // nil: it is over
}

// outageBits of a cursor count outages. They may come round: a reader would have to miss all that lay between.
const outageBits = 16

func (f *sourceFeed) cursor(c fanout.Cursor, o *outage) fanout.Cursor {
	if o == nil {
		return c << outageBits
	}
	return c<<outageBits | fanout.Cursor(o.number)
}

// begin is Feed.Begin, and then the failure, if the source fails now.
func (f *sourceFeed) begin(lastID string) fanout.Batch {
	o := f.now.Load()
	batch := f.Feed.Begin(lastID)
	if o != nil && o.frame != nil {
		batch = joined(batch, o)
	}
	batch.Next = f.cursor(batch.Next, o)
	return batch
}

// quiet is begin without the failure: for those who come again and again, and were told.
func (f *sourceFeed) quiet(lastID string) fanout.Batch {
	o := f.now.Load()
	batch := f.Feed.Begin(lastID)
	batch.Next = f.cursor(batch.Next, o)
	return batch
}

// Since implements fanout.Feed.
func (f *sourceFeed) Since(cursor fanout.Cursor) fanout.Batch {
	o := f.now.Load()
	batch := f.Feed.Since(cursor >> outageBits)
	if o != nil && o.frame != nil && o.number != uint16(cursor) {
		batch = joined(batch, o)
	}
	batch.Next = f.cursor(batch.Next, o)
	return batch
}

// joined appends the failure, which is not what somebody published and so does not count. The batch's own bytes are shared with
// others.
func joined(batch fanout.Batch, o *outage) fanout.Batch {
	if batch.Full > 0 {
		batch.Full += len(o.frame)
	}
	if len(batch.Bytes) == 0 {
		batch.Bytes = o.frame
	} else {
		batch.Bytes = append(append(make([]byte, 0, len(batch.Bytes)+len(o.frame)), batch.Bytes...), o.frame...)
	}
	return batch
}

// Watch implements fanout.Feed.
func (f *sourceFeed) Watch(changed func()) (stop func()) {
	stopFeed := f.Feed.Watch(changed)
	key := &changed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watches == nil {
		f.watches = make(map[*func()]struct{})
	}
	f.watches[key] = struct{}{}
	return func() {
		stopFeed()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, key)
	}
}

// tell has every reader learn of the failure, once per outage. nil ends the outage, without a word: the next document says it. It
// returns what readers are told, if there is something new.
func (f *sourceFeed) tell(reported *freshet.SourceFailure) (told *failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.now.Load()
	next := &outage{}
	if old != nil {
		next.number = old.number
	}
	switch {
	case reported == nil && (old == nil || old.frame == nil):
		return nil
	case reported != nil && old != nil && old.frame != nil && old.since.Equal(reported.Since):
		return nil
	case reported != nil:
		next.number++
		next.since = reported.Since
		event := newFailure(reported.Err(), f.legacy, time.Now())
		told = &event
		next.frame = event.frame(0)
		if f.compressed {
			next.frame = sse.AppendSegment(nil, next.frame)
		}
	}
	f.now.Store(next)
	if reported == nil {
		return nil
	}
	for changed := range f.watches {
		(*changed)()
	}
	return told
}

// sources knows what is wrong with data sources.
type sources struct {
	log    *slog.Logger
	values Sources // nil: nothing is polled
}

// look asks what is wrong with a topic's data source. A question that is not answered changes nothing.
func (s *sources) look(topicID string) (failure *freshet.SourceFailure, known bool) {
	if s.values == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	text, err := s.values.Value(ctx, freshet.SourceValue(topicID))
	if err != nil {
		s.log.Warn("state of a data source could not be read", "topic", topicID, "err", err)
		return nil, false
	}
	failure, _ = freshet.ParseSourceFailure(text)
	return failure, true
}
