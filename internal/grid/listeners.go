package grid

import (
	"slices"
	"sync"
)

// Listeners calls functions in the goroutine of whoever has news, in the order in which they were added. The zero value has none.
type Listeners[T any] struct {
	mu  sync.RWMutex // held for reading during calls, so that stop waits for them
	fns []*func(T)
}

// Add calls fn with all news from now on, until stop is called, which waits for a call in progress.
func (l *Listeners[T]) Add(fn func(T)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fns = append(l.fns, &fn)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fns = slices.DeleteFunc(l.fns, func(other *func(T)) bool { return other == &fn })
	}
}

// Tell returns once every function was called.
func (l *Listeners[T]) Tell(news T) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, fn := range l.fns {
		(*fn)(news)
	}
}
