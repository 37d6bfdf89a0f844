package usage

import (
	"context"
	"slices"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// batchLen bounds a transaction, so that others who write do not wait long.
const batchLen = 500

// Flush writes down what was counted so far.
func (m *Meter) Flush(ctx context.Context) error {
	return m.flush(ctx, func(string) bool { return true })
}

// flush writes down what was counted of the accounts that match.
func (m *Meter) flush(ctx context.Context, match func(userID string) bool) error {
	m.flushing.Lock()
	defer m.flushing.Unlock()
	if len(m.batches) == 0 {
		m.foldAll(time.Now())
		m.folding.Lock() // nothing may be charged to an account between the two
		m.beginFlush(match)
		rows := m.bins.take(match)
		m.folding.Unlock()
		for chunk := range slices.Chunk(rows, batchLen) {
			m.number++
			m.batches = append(m.batches, &store.UsageBatch{Writer: m.writer, Number: m.number, Rows: chunk})
		}
	}
	for len(m.batches) > 0 {
		// A batch whose fate is unknown stays first in line and keeps its number: the store knows whether it has it.
		if err := m.write(ctx, m.batches[0]); err != nil {
			m.failures.Add(1)
			return err
		}
		m.batches = m.batches[1:]
	}
	m.batches = nil
	return m.endFlush(ctx, match)
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
