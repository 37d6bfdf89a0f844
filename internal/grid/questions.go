package grid

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/freshet-io/freshet"
)

// Questions are what nodes ask each other: what only another one knows, or may do. Answers are for now; nothing is stored.
type Questions interface {
	// Answer has fn answer the questions of a name on this node, until stop is called. There is one fn for a name. It runs in a
	// goroutine of its own; errors that are *freshet.Error reach whoever asked, without their cause.
	Answer(name string, fn Answerer) (stop func())

	// Ask has any one node answer. It is of kind freshet.Unavailable if no node answers to the name, or not in time.
	Ask(ctx context.Context, name string, question []byte) ([]byte, error)

	// AskAll has every node answer that answers to the name, this one included. A node that does not in time is in the list, with
	// an error.
	AskAll(ctx context.Context, name string, question []byte) []Answer
}

// Answerer answers questions. It must not keep the question.
type Answerer func(ctx context.Context, question []byte) ([]byte, error)

// Answer is what one node said.
type Answer struct {
	Node string
	Data []byte
	Err  error
}

// Answerers are what a node answers to, by name. The zero value answers nothing.
type Answerers struct {
	mu  sync.Mutex
	fns map[string]*Answerer
}

// Add has fn answer to a name, until remove is called or another one takes its place.
func (a *Answerers) Add(name string, fn Answerer) (remove func()) {
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

// For returns who answers to a name, or nil.
func (a *Answerers) For(name string) Answerer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fn := a.fns[name]; fn != nil {
		return *fn
	}
	return nil
}

// Names returns what is answered to, in order.
func (a *Answerers) Names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.fns))
}

// ErrNobody returns what Ask says if no node answers to a name.
func ErrNobody(name string) error {
	return freshet.Errorf(freshet.Unavailable, "No process of the service can do this now (%s), please try again", name)
}
