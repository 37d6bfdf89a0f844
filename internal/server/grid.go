package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// countedGrid counts what the grid fails to do, whichever engine it is.
type countedGrid struct {
	grid.Grid
	errors [numGridCalls]atomic.Uint64
}

type gridCall int

const (
	gridDocument gridCall = iota
	gridPut
	gridDelete
	gridWatch
	gridPresence
	gridNotify
	gridValues
	gridCounters
	numGridCalls
)

var gridCalls = [numGridCalls]string{"document", "put", "delete", "watch", "presence", "notify", "claims", "counters"}

func (g *countedGrid) count(call gridCall, err error) {
	if err != nil && !errors.Is(err, grid.ErrConflict) && !errors.Is(err, grid.ErrDoubt) && !errors.Is(err, context.Canceled) {
		g.errors[call].Add(1)
	}
}

// Document implements grid.Documents.
func (g *countedGrid) Document(ctx context.Context, topic string) (grid.Document, error) {
	doc, err := g.Grid.Document(ctx, topic)
	g.count(gridDocument, err)
	return doc, err
}

// Put implements grid.Documents.
func (g *countedGrid) Put(ctx context.Context, topic string, expected freshet.Position, doc grid.Document) (freshet.Position, error) {
	pos, err := g.Grid.Put(ctx, topic, expected, doc)
	g.count(gridPut, err)
	return pos, err
}

// Delete implements grid.Documents.
func (g *countedGrid) Delete(ctx context.Context, topic string) error {
	err := g.Grid.Delete(ctx, topic)
	g.count(gridDelete, err)
	return err
}

// Watch implements grid.Documents.
func (g *countedGrid) Watch(ctx context.Context, topic string, changed func(grid.Document)) (stop func(), err error) {
	stop, err = g.Grid.Watch(ctx, topic, changed)
	g.count(gridWatch, err)
	return stop, err
}

// Join implements grid.Presence.
func (g *countedGrid) Join(ctx context.Context, topic string) (leave func(), err error) {
	leave, err = g.Grid.Join(ctx, topic)
	g.count(gridPresence, err)
	return leave, err
}

// Present implements grid.Presence.
func (g *countedGrid) Present(ctx context.Context, topic string) (bool, error) {
	present, err := g.Grid.Present(ctx, topic)
	g.count(gridPresence, err)
	return present, err
}

// Notify implements grid.Notices.
func (g *countedGrid) Notify(ctx context.Context, n grid.Notice) error {
	err := g.Grid.Notify(ctx, n)
	g.count(gridNotify, err)
	return err
}

// Value implements grid.Values.
func (g *countedGrid) Value(ctx context.Context, name string) (string, error) {
	value, err := g.Grid.Value(ctx, name)
	g.count(gridValues, err)
	return value, err
}

// Swap implements grid.Values.
func (g *countedGrid) Swap(ctx context.Context, name, old, new string, ttl time.Duration) (string, error) {
	now, err := g.Grid.Swap(ctx, name, old, new, ttl)
	g.count(gridValues, err)
	return now, err
}

// Add implements grid.Counters.
func (g *countedGrid) Add(ctx context.Context, counter string, delta int64, ttl time.Duration) (int64, error) {
	sum, err := g.Grid.Add(ctx, counter, delta, ttl)
	g.count(gridCounters, err)
	return sum, err
}

// Spend implements grid.Counters.
func (g *countedGrid) Spend(ctx context.Context, counter string, limit int64, ttl time.Duration) (int64, error) {
	sum, err := g.Grid.Spend(ctx, counter, limit, ttl)
	g.count(gridCounters, err)
	return sum, err
}
