package store

import (
	"slices"
	"strconv"
	"testing"

	"github.com/freshet-io/freshet"
)

// BenchmarkAddUsage is what it takes to write down one topic's sums, among those of many.
func BenchmarkAddUsage(b *testing.B) {
	s, err := Open(b.Context(), Location{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const topics, batch = 100_000, 500
	rows := make([]UsageRow, topics)
	for i := range rows {
		rows[i] = UsageRow{TopicID: freshet.NewID(), AppID: "app", UserID: "user", UsageHour: freshet.UsageHour{Hour: now, Usage: freshet.Usage{Publications: 1}}}
	}
	number := int64(0)
	add := func(rows []UsageRow) {
		number++
		err := s.Update(b.Context(), func(tx *Tx) error {
			return tx.AddUsage(&UsageBatch{Writer: "w", Number: number, At: now, Rows: slices.Clone(rows)})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for part := range slices.Chunk(rows, 5000) {
		add(part)
	}
	for _, distance := range []int{1, 10} { // of the topics that were used, in all there are
		b.Run("every "+strconv.Itoa(distance), func(b *testing.B) {
			at := 0
			for n := 0; n < b.N; n += batch {
				some := make([]UsageRow, 0, batch)
				for range batch {
					some = append(some, rows[at%topics])
					at += distance
				}
				add(some)
			}
		})
	}
}
