package subscribe

import "sync/atomic"

// workers run functions in goroutines, and keep some of those for the next ones: a goroutine that has served a request has grown the stack
// that the next request needs.
type workers struct {
	tasks chan func()   // to goroutines that wait for one
	done  chan struct{} // closed by close
	idle  atomic.Int32  // those goroutines
}

// maxIdleWorkers is how many goroutines wait when there is nothing to do: enough for a steady stream of requests.
const maxIdleWorkers = 16

func newWorkers() *workers { return &workers{tasks: make(chan func()), done: make(chan struct{})} }

// run runs a function in another goroutine. It does not block.
func (w *workers) run(f func()) {
	select {
	case w.tasks <- f:
	default:
		go w.work(f)
	}
}

func (w *workers) work(f func()) {
	for f != nil {
		f()
		f = w.next()
	}
}

// next waits for a task, unless enough others do or there will be none.
func (w *workers) next() (f func()) {
	if w.idle.Add(1) <= maxIdleWorkers {
		select {
		case f = <-w.tasks:
		case <-w.done:
		}
	}
	w.idle.Add(-1)
	return f
}

// close ends the goroutines that wait.
func (w *workers) close() { close(w.done) }
