package jetstream

import (
	"context"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// maxRefreshes is how many reads for newcomers a node asks of the servers in a second. Beyond it, in a storm of subscribers, they
// begin with what the node has: the servers have more urgent things to do then.
const maxRefreshes = 1000

// refreshPatience is how long whoever reads a topic waits to be sure of the newest document.
const refreshPatience = 2 * time.Second

// Refresh implements grid.Documents. A topic that many come to at once costs few reads.
func (d *documents) Refresh(ctx context.Context, topic string) error {
	if err := d.health.Check(ctx); err != nil {
		return err // it would only take its time to fail
	}
	s, err := d.topics.acquire(topic)
	if err != nil {
		return err
	}
	defer d.topics.release(s)
	mine, err := d.joinRefresh(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, refreshPatience)
	defer cancel()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return unknown(ctx.Err())
	}
}

// singleflight coalesces reads that must begin after they were asked for: whoever comes while one is under way waits for the next.
type singleflight struct {
	mu   sync.Mutex
	busy bool
	next *flight
}

// flight is a read that has not started. err is written before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// joinRefresh returns the next read of a topic, and sees to it that there is one.
func (d *documents) joinRefresh(s *slot) (*flight, error) {
	f := &s.refresh
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		return f.next, nil
	}
	if !d.refreshes.allow(time.Now()) {
		return nil, freshet.Errorf(freshet.Unavailable, "Too many reads at once")
	}
	mine := &flight{done: make(chan struct{})}
	f.next = mine
	if !f.busy {
		if f.busy = d.link.tasks.spawn(func() { d.refresh(s) }); !f.busy {
			f.next = nil
			return nil, errClosed
		}
	}
	return mine, nil
}

// refresh reads until nobody waits for it. The slot stays usable after the last one who waited released it.
func (d *documents) refresh(s *slot) {
	f := &s.refresh
	for {
		f.mu.Lock()
		read := f.next
		f.next = nil
		if f.busy = read != nil; !f.busy {
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		read.err = d.compare(s)
		close(read.done)
	}
}

// compare asks the leader whether the head is the newest message, and adopts what is.
func (d *documents) compare(s *slot) error {
	ctx := d.link.tasks.ctx
	msg, err := s.stream.last(ctx, s.subject)
	if err != nil {
		return err
	}
	if h := s.snapshot(); h.known && h.seq == msg.seq {
		return nil
	}
	_, err = d.newest(ctx, s, nil)
	return err
}

// perSecond allows something so many times a second.
type perSecond struct {
	limit int

	mu     sync.Mutex
	second int64
	count  int
}

func (p *perSecond) allow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := now.Unix(); s != p.second {
		p.second, p.count = s, 0
	}
	p.count++
	return p.count <= p.limit
}
