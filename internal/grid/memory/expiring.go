package memory

import (
	"sync"
	"time"
)

// expiring is a map whose entries expire. They are swept while others are added, so that nothing runs for them.
type expiring[T any] struct {
	mu      sync.Mutex // taken by the caller of every method, who may do several at once
	all     map[string]*entry[T]
	sweepAt int // number of entries at which the next sweep is worth its cost
}

type entry[T any] struct {
	value   T
	expires time.Time
}

// get returns the zero value for what is not there, or not any more.
func (e *expiring[T]) get(name string, now time.Time) (value T) {
	if found := e.all[name]; found != nil && now.Before(found.expires) {
		return found.value
	}
	return value
}

func (e *expiring[T]) set(name string, value T, now time.Time, ttl time.Duration) {
	if known := e.all[name]; known != nil {
		*known = entry[T]{value, now.Add(ttl)}
		return
	}
	if e.all == nil {
		e.all = make(map[string]*entry[T])
	}
	e.all[name] = &entry[T]{value, now.Add(ttl)}
	e.sweep(now)
}

func (e *expiring[T]) remove(name string) { delete(e.all, name) }

// minSweep is how many entries are not worth a sweep.
const minSweep = 1024

// sweep drops what expired once the number of entries doubled since the last time: a constant cost for each.
func (e *expiring[T]) sweep(now time.Time) {
	if len(e.all) < max(e.sweepAt, minSweep) {
		return
	}
	for name, one := range e.all {
		if !now.Before(one.expires) {
			delete(e.all, name)
		}
	}
	e.sweepAt = 2 * len(e.all)
}
