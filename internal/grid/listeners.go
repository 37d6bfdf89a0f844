package grid

import "sync"

// Listeners calls functions in the goroutine of whoever has news. The zero value has none.
type Listeners[T any] struct {
	mu  sync.RWMutex // held for reading during calls, so that stop waits for them
	fns map[*func(T)]struct{}
}

// Add calls fn with all news from now on, until stop is called, which waits for a call in progress.
func (l *Listeners[T]) Add(fn func(T)) (stop func()) {
	key := &fn
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fns == nil {
		l.fns = make(map[*func(T)]struct{})
	}
	l.fns[key] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.fns, key)
	}
}

// Tell returns once every function was called.
func (l *Listeners[T]) Tell(news T) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for fn := range l.fns {
		(*fn)(news)
	}
}
