package store

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
)

// UsageRow is what one topic used in one hour.
type UsageRow struct {
	TopicID, AppID, UserID string
	freshet.UsageHour
}

// UsageBatch is usage to be added. Writer and Number tell batches apart: one that was added already is not added again.
type UsageBatch struct {
	Writer string
	Number int64 // rises with every batch of a writer
	At     time.Time
	Rows   []UsageRow
}

// AddUsage adds a batch to what is written down.
func (tx *Tx) AddUsage(b *UsageBatch) error {
	fresh, err := tx.writeAny(`INSERT INTO usage_writers (id, batch, written_at) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, written_at = excluded.written_at
		WHERE usage_writers.batch < excluded.batch`, b.Writer, b.Number, millis(b.At))
	if err != nil || fresh == 0 {
		return err
	}
	for i := range b.Rows {
		if err := tx.addUsage(&b.Rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) addUsage(r *UsageRow) error {
	u := &r.Usage
	_, err := tx.writeAny(`INSERT INTO usage (topic_id, hour, app_id, user_id, messages, bytes, full_bytes, publications, polls,
			polls_not_modified, connected_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (topic_id, hour) DO UPDATE SET messages = usage.messages + excluded.messages,
			bytes = usage.bytes + excluded.bytes, full_bytes = usage.full_bytes + excluded.full_bytes,
			publications = usage.publications + excluded.publications, polls = usage.polls + excluded.polls,
			polls_not_modified = usage.polls_not_modified + excluded.polls_not_modified,
			connected_ms = usage.connected_ms + excluded.connected_ms`,
		r.TopicID, millis(r.Hour), r.AppID, r.UserID, u.Messages, u.Bytes, u.FullBytes, u.Publications, u.Polls,
		u.PollsNotModified, u.Connected.Milliseconds())
	if err != nil || u.Messages == 0 {
		return err
	}
	_, err = tx.writeAny(`INSERT INTO usage_months (user_id, month, messages) VALUES ($1, $2, $3)
		ON CONFLICT (user_id, month) DO UPDATE SET messages = usage_months.messages + excluded.messages`,
		r.UserID, millis(freshet.Month(r.Hour)), u.Messages)
	return err
}

// PruneUsage forgets hours before the given one, and what nobody asks for any more.
func (tx *Tx) PruneUsage(before time.Time) error {
	if _, err := tx.writeAny(`DELETE FROM usage WHERE hour < $1`, millis(before)); err != nil {
		return err
	}
	if _, err := tx.writeAny(`DELETE FROM usage_writers WHERE written_at < $1`, millis(before)); err != nil {
		return err
	}
	_, err := tx.writeAny(`DELETE FROM usage_months WHERE month < $1`, millis(freshet.Month(before)))
	return err
}

// MonthMessages returns how many messages an account's subscribers got in the month.
func (s *Store) MonthMessages(ctx context.Context, userID string, month time.Time) (int64, error) {
	var n int64
	err := s.reader(ctx).rows(`SELECT messages FROM usage_months WHERE user_id = $1 AND month = $2`, []any{userID, millis(month)},
		func(scan scanner) error { return scan(&n) })
	return n, err
}

// Span is a time from its first moment to just before its last.
type Span struct{ From, To time.Time }

// OwnedUsage is usage by the hour, and whose it is.
type OwnedUsage struct {
	UserID string
	Hours  []freshet.UsageHour
}

// TopicUsage returns what a topic used.
func (s *Store) TopicUsage(ctx context.Context, id string, span Span) (*OwnedUsage, error) {
	return s.ownedUsage(ctx, "topic", `SELECT a.user_id, `+usageColumns+`
		FROM topics t JOIN apps a ON a.id = t.app_id
		LEFT JOIN usage u ON u.topic_id = t.id AND u.hour >= $2 AND u.hour < $3
		WHERE t.id = $1 ORDER BY u.hour`, id, span)
}

// AppUsage returns what all topics of an app used, also those that are gone.
func (s *Store) AppUsage(ctx context.Context, id string, span Span) (*OwnedUsage, error) {
	return s.ownedUsage(ctx, "app", `SELECT a.user_id, `+usageSums+`
		FROM apps a LEFT JOIN usage u ON u.app_id = a.id AND u.hour >= $2 AND u.hour < $3
		WHERE a.id = $1 GROUP BY a.user_id, u.hour ORDER BY u.hour`, id, span)
}

// Usage returns what everybody used.
func (s *Store) Usage(ctx context.Context, span Span) ([]freshet.UsageHour, error) {
	var hours []freshet.UsageHour
	err := s.reader(ctx).rows(`SELECT `+usageSums+` FROM usage u WHERE u.hour >= $1 AND u.hour < $2 GROUP BY u.hour ORDER BY u.hour`,
		[]any{millis(span.From), millis(span.To)}, func(scan scanner) error {
			var r usageRow
			if err := scan(r.dest()...); err != nil {
				return err
			}
			hours = append(hours, r.value())
			return nil
		})
	return hours, err
}

func (s *Store) ownedUsage(ctx context.Context, what, query, id string, span Span) (*OwnedUsage, error) {
	if !isText(id) {
		return nil, notFound(what)
	}
	var found *OwnedUsage
	err := s.reader(ctx).rows(query, []any{id, millis(span.From), millis(span.To)}, func(scan scanner) error {
		var owner string
		var r usageRow
		if err := scan(append([]any{&owner}, r.dest()...)...); err != nil {
			return err
		}
		if found == nil {
			found = &OwnedUsage{UserID: owner}
		}
		if r.hour != 0 {
			found.Hours = append(found.Hours, r.value())
		}
		return nil
	})
	if err == nil && found == nil {
		err = notFound(what)
	}
	return found, err
}

const usageColumns = `u.hour, u.messages, u.bytes, u.full_bytes, u.publications, u.polls, u.polls_not_modified, u.connected_ms`

// usageSums has casts because PostgreSQL's sums of BIGINT are of another type.
const usageSums = `u.hour, CAST(SUM(u.messages) AS BIGINT), CAST(SUM(u.bytes) AS BIGINT), CAST(SUM(u.full_bytes) AS BIGINT),
	CAST(SUM(u.publications) AS BIGINT), CAST(SUM(u.polls) AS BIGINT), CAST(SUM(u.polls_not_modified) AS BIGINT),
	CAST(SUM(u.connected_ms) AS BIGINT)`

// usageRow collects the columns of usageColumns and usageSums.
type usageRow struct {
	hour, connected int64
	usage           freshet.Usage
}

func (r *usageRow) dest() []any {
	u := &r.usage
	return []any{&r.hour, &u.Messages, &u.Bytes, &u.FullBytes, &u.Publications, &u.Polls, &u.PollsNotModified, &r.connected}
}

func (r *usageRow) value() freshet.UsageHour {
	r.usage.Connected = time.Duration(r.connected) * time.Millisecond
	return freshet.UsageHour{Hour: fromMillis(r.hour), Usage: r.usage}
}
