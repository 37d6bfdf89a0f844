package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
)

func TestUsageAddsUpByTopicAppAndMonth(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		user, app, topic := household(t, s, "ada@example.com")
		hour := time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)
		used := freshet.Usage{Messages: 1, Bytes: 2, FullBytes: 3, Publications: 4, Polls: 5, PollsNotModified: 6, PollsFailed: 7, Connected: 8 * time.Second,
			Lag: freshet.Lags{1, 2, 17: 3}}
		row := func(topicID string, at time.Time) UsageRow {
			return UsageRow{TopicID: topicID, AppID: app.ID, UserID: user.ID, UsageHour: freshet.UsageHour{Hour: at, Usage: used}}
		}
		gone := freshet.NewID()
		batch := UsageBatch{Writer: "w", Number: 1, At: now, Rows: []UsageRow{
			row(topic.ID, hour), row(topic.ID, hour.Add(time.Hour)), row(gone, hour)}}
		for range 2 { // the second time its fate was known to the store only
			update(t, s, func(tx *Tx) error { return tx.AddUsage(&batch) })
		}
		batch.Number = 2
		batch.Rows = []UsageRow{row(topic.ID, hour)}
		update(t, s, func(tx *Tx) error { return tx.AddUsage(&batch) })

		twice, thrice := used, used
		twice.Add(used)
		thrice.Add(twice)
		all := Span{From: hour, To: hour.Add(2 * time.Hour)}
		want := []freshet.UsageHour{{Hour: hour, Usage: twice}, {Hour: hour.Add(time.Hour), Usage: used}}
		wantSame(t, must(s.TopicUsage(ctx, topic.ID, all))(t), &OwnedUsage{UserID: user.ID, Hours: want})
		want[0].Usage = thrice
		wantSame(t, must(s.AppUsage(ctx, app.ID, all))(t), &OwnedUsage{UserID: user.ID, Hours: want})
		wantSame(t, must(s.UserUsage(ctx, user.ID, all))(t), &OwnedUsage{UserID: user.ID, Hours: want})
		wantSame(t, must(s.Usage(ctx, all))(t), want)
		wantSame(t, must(s.Usage(ctx, Span{From: hour, To: hour.Add(time.Hour)}))(t), want[:1])
		wantSame(t, must(s.MonthMessages(ctx, []string{user.ID}, freshet.Month(hour)))(t)[user.ID], int64(3))
		wantSame(t, must(s.MonthMessages(ctx, []string{user.ID}, freshet.Month(hour.Add(time.Hour))))(t)[user.ID], int64(1))
		wantSame(t, must(s.MonthMessages(ctx, []string{freshet.NewID()}, freshet.Month(hour)))(t)[freshet.NewID()], int64(0))

		wantSame(t, must(s.AppMonthMessages(ctx, []string{app.ID}, freshet.Month(hour)))(t)[app.ID], int64(3))
		wantSame(t, must(s.AppMonthMessages(ctx, []string{app.ID}, freshet.Month(hour.Add(time.Hour))))(t)[app.ID], int64(1))
		wantSame(t, must(s.AppMonthMessages(ctx, []string{user.ID}, freshet.Month(hour)))(t)[user.ID], int64(0))

		_, err := s.TopicUsage(ctx, gone, all)
		wantKind(t, err, freshet.NotFound)
		_, err = s.AppUsage(ctx, "\x00", all)
		wantKind(t, err, freshet.NotFound)
		wantSame(t, must(s.AppUsage(ctx, app.ID, Span{From: hour.Add(9 * time.Hour), To: hour.Add(10 * time.Hour)}))(t), &OwnedUsage{UserID: user.ID})

		eve, theirs, other := household(t, s, "eve@example.com")
		update(t, s, func(tx *Tx) error {
			return tx.AddUsage(&UsageBatch{Writer: "w", Number: 3, At: now, Rows: []UsageRow{{TopicID: other.ID, AppID: theirs.ID, UserID: eve.ID,
				UsageHour: freshet.UsageHour{Hour: hour.Add(time.Hour), Usage: freshet.Usage{Messages: 100}}}}})
		})
		wantSame(t, must(s.TopUsage(ctx, ByTopic, "messages", all, 2))(t), []TopUsage{
			{ID: other.ID, UserID: eve.ID, Usage: freshet.Usage{Messages: 100}}, {ID: topic.ID, UserID: user.ID, Usage: thrice}})
		ofApp := thrice
		ofApp.Add(used)
		wantSame(t, must(s.TopUsage(ctx, ByApp, "polls_failed", all, 9))(t), []TopUsage{{ID: app.ID, UserID: user.ID, Usage: ofApp}})
		wantSame(t, must(s.TopUsage(ctx, ByUser, "bytes", all, 9))(t), []TopUsage{{ID: user.ID, UserID: user.ID, Usage: ofApp}})
		_, err = s.TopUsage(ctx, ByUser, "hour", all, 9)
		wantKind(t, err, freshet.Invalid)

		update(t, s, func(tx *Tx) error { return tx.PruneUsage(hour.Add(time.Hour)) })
		used.Messages += 100
		wantSame(t, must(s.Usage(ctx, all))(t), []freshet.UsageHour{{Hour: hour.Add(time.Hour), Usage: used}})
		wantSame(t, must(s.MonthMessages(ctx, []string{user.ID}, freshet.Month(hour)))(t)[user.ID], int64(0))
		wantSame(t, must(s.AppMonthMessages(ctx, []string{app.ID}, freshet.Month(hour)))(t)[app.ID], int64(0))
	})
}

// TestNodesThatWriteTheSameUsageDoNotWaitInACircle: a database that finds a circle ends one of its transactions, which is tried again.
func TestNodesThatWriteTheSameUsageDoNotWaitInACircle(t *testing.T) {
	t.Parallel()
	s := open(t, Location{URL: pgtest.URL(t)})
	var rows []UsageRow
	for i := range 40 {
		rows = append(rows, UsageRow{
			TopicID: fmt.Sprint("topic-", i), AppID: "app", UserID: fmt.Sprint("user-", i%5),
			UsageHour: freshet.UsageHour{Hour: freshet.Month(now), Usage: freshet.Usage{Messages: 1}},
		})
	}
	var nodes sync.WaitGroup
	var tries, batches atomic.Int64
	for node := range 4 {
		nodes.Go(func() {
			for number := range int64(10) {
				b := UsageBatch{Writer: fmt.Sprint("node-", node), Number: number + 1, At: now}
				for _, i := range rand.Perm(len(rows)) {
					b.Rows = append(b.Rows, rows[i])
				}
				batches.Add(1)
				if err := s.Update(t.Context(), func(tx *Tx) error { tries.Add(1); return tx.AddUsage(&b) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	wantSame(t, tries.Load(), batches.Load())
	wantSame(t, must(s.MonthMessages(t.Context(), []string{"user-0"}, freshet.Month(now)))(t)["user-0"], int64(4*10*8))
}

func TestManyRowsAtOnceAddUp(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		const topics = 3*maxRows + 7
		var rows []UsageRow
		for i := range topics {
			used := freshet.Usage{Messages: 1, Publications: 2}
			if i > 2*maxRows {
				used.Lag[3] = 1 // some statements have the columns of the histogram, and some do not
			}
			rows = append(rows, UsageRow{TopicID: fmt.Sprint(i), AppID: fmt.Sprint("app", i), UserID: fmt.Sprint("user", i%100),
				UsageHour: freshet.UsageHour{Hour: now.Truncate(time.Hour), Usage: used}})
		}
		rows = append(rows, rows[0], rows[topics-1]) // as a node of another version may send them
		for number := range int64(3) {
			update(t, s, func(tx *Tx) error {
				return tx.AddUsage(&UsageBatch{Writer: "w", Number: number + 1, At: now, Rows: slices.Clone(rows)})
			})
		}
		want := freshet.Usage{Messages: 3 * int64(len(rows)), Publications: 6 * int64(len(rows))}
		want.Lag[3] = 3 * int64(topics-2*maxRows-1+1)
		got := must(s.Usage(t.Context(), Span{From: now.Add(-time.Hour), To: now.Add(time.Hour)}))(t)
		wantSame(t, got, []freshet.UsageHour{{Hour: now.Truncate(time.Hour), Usage: want}})
		months := must(s.MonthMessages(t.Context(), []string{"user0", "user1"}, freshet.Month(now)))(t)
		wantSame(t, months, map[string]int64{"user0": 3 * 3, "user1": 3 * 2}) // 0, 100, and 0 again; 1, 101
	})
}
