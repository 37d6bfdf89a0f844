package grid

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/freshet-io/freshet"
)

// answerers are what this node answers to.
type answerers struct {
	mu  sync.Mutex
	fns map[string]*Answerer
}

func (a *answerers) add(name string, fn Answerer) (remove func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fns == nil {
		a.fns = make(map[string]*Answerer)
	}
	a.fns[name] = &fn
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.fns[name] == &fn {
			delete(a.fns, name)
		}
	}
}

func (a *answerers) get(name string) Answerer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fn := a.fns[name]; fn != nil {
		return *fn
	}
	return nil
}

func (a *answerers) names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.fns))
}

func errNobody(name string) error {
	return freshet.Errorf(freshet.Unavailable, "No process of the service can do this now (%s), please try again", name)
}

// Answer implements Questions.
func (m *Memory) Answer(name string, fn Answerer) (stop func()) { return m.answers.add(name, fn) }

// Ask implements Questions.
func (m *Memory) Ask(ctx context.Context, name string, question []byte) ([]byte, error) {
	fn := m.answers.get(name)
	if fn == nil {
		return nil, errNobody(name)
	}
	return fn(ctx, question)
}

// AskAll implements Questions.
func (m *Memory) AskAll(ctx context.Context, name string, question []byte) []Answer {
	fn := m.answers.get(name)
	if fn == nil {
		return nil
	}
	data, err := fn(ctx, question)
	return []Answer{{Data: data, Err: err}}
}
