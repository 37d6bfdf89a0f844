package catalog

import (
	"sync"
	"time"
)

// overlaps remembers when renewed keys stop working, so that streams are told in time. It is a courtesy of the node that
// renewed the key: if that node is gone, streams find out at their next periodic look.
type overlaps struct {
	mu     sync.Mutex
	timers map[*time.Timer]struct{} // Guarded by mu.
	closed bool                     // Guarded by mu.
}

func (o *overlaps) after(d time.Duration, act func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.timers == nil {
		o.timers = map[*time.Timer]struct{}{}
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		o.mu.Lock()
		delete(o.timers, timer)
		closed := o.closed
		o.mu.Unlock()
		if !closed {
			act()
		}
	})
	o.timers[timer] = struct{}{}
}

func (o *overlaps) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for timer := range o.timers {
		timer.Stop()
	}
	clear(o.timers)
}
