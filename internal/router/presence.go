package router

import "sync"

// presence tells the grid while somebody reads the topic here.
type presence struct {
	mu      sync.Mutex // held while the grid is asked: who comes next must not rely on what is not told yet
	readers int
	leave   func()
}

// enter counts a reader. The first one joins.
func (p *presence) enter(join func() (leave func(), err error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers == 0 {
		leave, err := join()
		if err != nil {
			return err
		}
		p.leave = leave
	}
	p.readers++
	return nil
}

// exit counts a reader out. The last one leaves.
func (p *presence) exit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers--; p.readers == 0 {
		p.leave()
		p.leave = nil
	}
}
