package memory

import (
	"context"

	"github.com/freshet-io/freshet/internal/grid"
)

// Questions are answered by the process that asks. The zero value answers nothing.
type Questions struct {
	answerers grid.Answerers
}

// Answer implements grid.Questions.
func (q *Questions) Answer(name string, fn grid.Answerer) (stop func()) {
	return q.answerers.Add(name, fn)
}

// Ask implements grid.Questions.
func (q *Questions) Ask(ctx context.Context, name string, question []byte) ([]byte, error) {
	fn := q.answerers.For(name)
	if fn == nil {
		return nil, grid.ErrNobody(name)
	}
	return fn(ctx, question)
}

// AskAll implements grid.Questions.
func (q *Questions) AskAll(ctx context.Context, name string, question []byte) []grid.Answer {
	fn := q.answerers.For(name)
	if fn == nil {
		return nil
	}
	data, err := fn(ctx, question)
	return []grid.Answer{{Data: data, Err: err}}
}
