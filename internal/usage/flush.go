package usage

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// batchLen bounds a transaction, so that others who write do not wait long.
const batchLen = 500

// steps is in how many parts everything is written down, one after the other over the time between two flushes, so that there is
// no burst: publishers and the disk would notice.
const steps = 8

// schedule says what is to be written down at each step. It belongs to run.
type schedule struct {
	step   int
	spread bool // there is too much for one step
}

// flushStep writes down what is due: a part of what was counted, or everything if that is not much.
func (m *Meter) flushStep(ctx context.Context, s *schedule) error {
	part := selection{step: s.step, steps: steps}
	if s.step == 0 {
		m.foldAll(time.Now())
		if s.spread = m.bins.len() > batchLen; !s.spread {
			part = selection{}
		}
	}
	due := s.spread || s.step == 0
	s.step = (s.step + 1) % steps
	if !due {
		return nil
	}
	part.refresh = s.step == 0 || !s.spread
	return m.flush(ctx, part)
}

// Flush writes down what was counted so far.
func (m *Meter) Flush(ctx context.Context) error {
	m.foldAll(time.Now())
	return m.flush(ctx, selection{refresh: true})
}

// flush writes down what was counted and is selected.
func (m *Meter) flush(ctx context.Context, which selection) error {
	m.flushing.Lock()
	defer m.flushing.Unlock()
	if err := m.writeBatches(ctx); err != nil {
		return err // what is new waits: it may be much by the time the store is back
	}
	m.folding.Lock() // nothing may be charged to an account between the two
	rows := m.bins.take(which)
	m.beginFlush(rows)
	m.folding.Unlock()
	slices.SortFunc(rows, func(a, b store.UsageRow) int { return strings.Compare(a.TopicID, b.TopicID) }) // neighbours lie close together
	for chunk := range slices.Chunk(rows, batchLen) {
		m.number++
		m.batches = append(m.batches, &store.UsageBatch{Writer: m.writer, Number: m.number, Rows: chunk})
	}
	if err := m.writeBatches(ctx); err != nil {
		return err
	}
	return m.endFlush(ctx, which)
}

// writeBatches writes down what was taken out of the sums. The caller holds flushing.
func (m *Meter) writeBatches(ctx context.Context) error {
	for len(m.batches) > 0 {
		// A batch whose fate is unknown stays first in line and keeps its number: the store knows whether it has it.
		if err := m.write(ctx, m.batches[0]); err != nil {
			m.failures.Add(1)
			return err
		}
		m.batches = m.batches[1:]
	}
	m.batches = nil
	return nil
}

// Hours merges what is written down, which read returns, with what was counted here since: of the places that match, in the
// span.
func (m *Meter) Hours(span store.Span, match func(Place) bool, read func() ([]freshet.UsageHour, error)) ([]freshet.UsageHour, error) {
	m.foldAll(time.Now())
	m.flushing.RLock()
	defer m.flushing.RUnlock()
	hours, err := read()
	if err != nil {
		return nil, err
	}
	more := func(row *store.UsageRow) {
		if row.Hour.Before(span.From) || !row.Hour.Before(span.To) || !match(Place{row.TopicID, row.AppID, row.UserID}) {
			return
		}
		i, found := slices.BinarySearchFunc(hours, row.Hour, func(h freshet.UsageHour, at time.Time) int { return h.Hour.Compare(at) })
		if !found {
			hours = slices.Insert(hours, i, freshet.UsageHour{Hour: row.Hour})
		}
		hours[i].Add(row.Usage)
	}
	for _, b := range m.batches {
		for i := range b.Rows {
			more(&b.Rows[i])
		}
	}
	m.bins.each(more)
	return hours, nil
}
