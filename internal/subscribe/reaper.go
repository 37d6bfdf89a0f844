package subscribe

import "sync"

// reaper closes groups without members in a goroutine of its own: the last member may leave from an event loop, which must not wait.
type reaper struct {
	wake     chan struct{} // holds one
	done     chan struct{}
	finished chan struct{}

	mu     sync.Mutex
	groups []*group // to be closed; guarded by mu
}

func newReaper() *reaper {
	r := &reaper{wake: make(chan struct{}, 1), done: make(chan struct{}), finished: make(chan struct{})}
	go r.run()
	return r
}

// add has a group closed. It does not block.
func (r *reaper) add(g *group) {
	r.mu.Lock()
	r.groups = append(r.groups, g)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close closes the groups that were added, and ends the goroutine.
func (r *reaper) close() {
	close(r.done)
	<-r.finished
}

func (r *reaper) run() {
	defer close(r.finished)
	for {
		select {
		case <-r.done:
			r.closeAll()
			return
		case <-r.wake:
			r.closeAll()
		}
	}
}

func (r *reaper) closeAll() {
	r.mu.Lock()
	groups := r.groups
	r.groups = nil
	r.mu.Unlock()
	for _, g := range groups {
		g.close()
	}
}
