package store

import (
	"fmt"
	"testing"

	"github.com/freshet-io/freshet/internal/pgtest"
)

const manyTopics = 50_000

// BenchmarkTopicsPage shows what a page of 100 costs at the beginning, in the middle and at the end of a long listing.
func BenchmarkTopicsPage(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			where := Location{Dir: b.TempDir()}
			if engine == "postgres" {
				where = Location{URL: pgtest.URL(b)}
			}
			s := open(b, where)
			_, app, _ := household(b, s, "ada@example.com")
			fill(b, s, app.ID, manyTopics-1)
			if engine == "postgres" {
				// As its autovacuum does by itself, only later: plans depend on it.
				if _, err := s.write.ExecContext(b.Context(), "VACUUM ANALYZE"); err != nil {
					b.Fatal(err)
				}
			}
			for _, place := range []struct {
				name   string
				offset int64
				want   int
			}{
				{"first", 0, 100},
				{"quarter", manyTopics / 4, 100},
				{"middle", manyTopics / 2, 100},
				{"last", manyTopics - 100, 100},
				{"beyond", 1 << 62, 0},
			} {
				b.Run(place.name, func(b *testing.B) {
					for b.Loop() {
						list, err := s.Topics(b.Context(), app.ID, Page{Offset: place.offset, Limit: 100})
						if err != nil || len(list.Items) != place.want {
							b.Fatalf("%d topics, %v", len(list.Items), err)
						}
					}
				})
			}
		})
	}
}

// fill adds n topics to the app. Not in one transaction: PostgreSQL keeps every version of the app's row until the
// transaction ends, and walks through all of them for each topic.
func fill(t testing.TB, s *Store, appID string, n int) {
	t.Helper()
	for n > 0 {
		batch := min(n, 500)
		update(t, s, func(tx *Tx) error {
			for i := range batch {
				if err := tx.CreateTopic(newTopic(appID, fmt.Sprintf("topic %d", n-i))); err != nil {
					return err
				}
			}
			return nil
		})
		n -= batch
	}
}

// BenchmarkTopicAccess is the question behind every publication and every stream that no cache answers.
func BenchmarkTopicAccess(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			where := Location{Dir: b.TempDir()}
			if engine == "postgres" {
				where = Location{URL: pgtest.URL(b)}
			}
			s := open(b, where)
			_, _, topic := household(b, s, "ada@example.com")
			for b.Loop() {
				if _, err := s.TopicAccess(b.Context(), topic.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
