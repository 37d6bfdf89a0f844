package poll

import "sync"

// maxWorkers bounds how many questions to the catalog are under way, when many topics begin at once.
const maxWorkers = 16

// jobs runs what takes time and must not be done by who asks for it. Its workers exist only while there is work.
type jobs struct {
	mu      sync.Mutex
	waiting []func() // Guarded by mu.
	workers int      // Guarded by mu.
}

// later runs the job soon, in the order of asking.
func (p *Poller) later(job func()) {
	j := &p.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.closed.Load() {
		return
	}
	j.waiting = append(j.waiting, job)
	if j.workers < maxWorkers {
		j.workers++
		p.working.Go(p.work)
	}
}

func (p *Poller) work() {
	for job := p.nextJob(); job != nil; job = p.nextJob() {
		job()
	}
}

// nextJob returns nil, and counts the worker out, when there is no more.
func (p *Poller) nextJob() func() {
	j := &p.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 || p.closed.Load() {
		j.waiting = nil
		j.workers--
		return nil
	}
	job := j.waiting[0]
	j.waiting[0] = nil
	j.waiting = j.waiting[1:]
	return job
}
