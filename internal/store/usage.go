package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// AddUsage adds a batch to what is written down. It sorts the rows: nodes that write at the same time must come upon those that
// they share in the same order, or they would wait for each other.
func (tx *Tx) AddUsage(b *UsageBatch) error {
	fresh, err := tx.writeAny(`INSERT INTO usage_writers (id, batch, written_at) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, written_at = excluded.written_at
		WHERE usage_writers.batch < excluded.batch`, b.Writer, b.Number, millis(b.At))
	if err != nil || fresh == 0 {
		return err
	}
	b.Rows = eachOnce(b.Rows)
	for rows := range slices.Chunk(b.Rows, maxRows) {
		if err := tx.addHours(rows); err != nil {
			return err
		}
	}
	if err := tx.addMonths(&addedAppMonths, b.Rows, func(r *UsageRow) string { return r.AppID }); err != nil {
		return err
	}
	return tx.addMonths(&addedMonths, b.Rows, func(r *UsageRow) string { return r.UserID })
}

// eachOnce sorts rows by topic and hour, and adds up those that have both in common.
func eachOnce(rows []UsageRow) []UsageRow {
	slices.SortFunc(rows, func(a, b UsageRow) int { return cmp.Or(cmp.Compare(a.TopicID, b.TopicID), a.Hour.Compare(b.Hour)) })
	once := rows[:0]
	for i := range rows {
		if last := len(once) - 1; last >= 0 && once[last].TopicID == rows[i].TopicID && once[last].Hour.Equal(rows[i].Hour) {
			once[last].Add(rows[i].Usage)
			continue
		}
		once = append(once, rows[i])
	}
	return once
}

// What is added to. Many topics are published to and have no subscribers, so there are no deliveries to be written down.
var (
	usageKey       = []string{"topic_id", "hour"}
	usageOwners    = []string{"app_id", "user_id"}
	addedHours     = upsert{table: "usage", key: usageKey, given: usageOwners, counted: usageNames}
	addedUnlagged  = upsert{table: "usage", key: usageKey, given: usageOwners, counted: usageNames[:numUnlagged]}
	addedMonths    = upsert{table: "usage_months", key: []string{"user_id", "month"}, counted: []string{"messages"}}
	addedAppMonths = upsert{table: "usage_app_months", key: []string{"app_id", "month"}, counted: []string{"messages"}}
)

func (tx *Tx) addHours(rows []UsageRow) error {
	lagged := slices.ContainsFunc(rows, func(r UsageRow) bool { return r.Lag != freshet.Lags{} })
	statement, counts := &addedUnlagged, numUnlagged
	if lagged {
		statement, counts = &addedHours, len(usageNames)
	}
	all := make([][]any, len(rows))
	for i := range rows {
		r := &rows[i]
		all[i] = append([]any{r.TopicID, millis(r.Hour), r.AppID, r.UserID}, counted(&r.Usage)[:counts]...)
	}
	return statement.run(tx, all)
}

// addMonths adds up the messages of each owner and month, and writes each sum once.
func (tx *Tx) addMonths(to *upsert, rows []UsageRow, owner func(*UsageRow) string) error {
	type key struct {
		owner string
		month int64
	}
	sums := make(map[key]int64)
	for i := range rows {
		if r := &rows[i]; r.Messages != 0 {
			sums[key{owner(r), millis(freshet.Month(r.Hour))}] += r.Messages
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b key) int { return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.month, b.month)) })
	all := make([][]any, len(keys))
	for i, k := range keys {
		all[i] = []any{k.owner, k.month, sums[k]}
	}
	return to.run(tx, all)
}

// PruneUsage forgets hours before the given one, and what nobody asks for any more.
func (tx *Tx) PruneUsage(before time.Time) error {
	if _, err := tx.writeAny(`DELETE FROM usage WHERE hour < $1`, millis(before)); err != nil {
		return err
	}
	if _, err := tx.writeAny(`DELETE FROM usage_writers WHERE written_at < $1`, millis(before)); err != nil {
		return err
	}
	if _, err := tx.writeAny(`DELETE FROM usage_months WHERE month < $1`, millis(freshet.Month(before))); err != nil {
		return err
	}
	_, err := tx.writeAny(`DELETE FROM usage_app_months WHERE month < $1`, millis(freshet.Month(before)))
	return err
}

// MonthMessages returns how many messages the subscribers of accounts got in the month. Accounts without any are left out.
func (s *Store) MonthMessages(ctx context.Context, userIDs []string, month time.Time) (map[string]int64, error) {
	return s.monthMessages(ctx, `SELECT user_id, messages FROM usage_months WHERE month = $1 AND user_id IN (`, userIDs, month)
}

// AppMonthMessages returns how many messages the subscribers of apps got in the month. Apps without any are left out.
func (s *Store) AppMonthMessages(ctx context.Context, appIDs []string, month time.Time) (map[string]int64, error) {
	return s.monthMessages(ctx, `SELECT app_id, messages FROM usage_app_months WHERE month = $1 AND app_id IN (`, appIDs, month)
}

// monthsAtOnce is how many sums are read by one statement: a server whose settings limit everybody asks for thousands every few
// seconds.
const monthsAtOnce = 100

func (s *Store) monthMessages(ctx context.Context, query string, ids []string, month time.Time) (map[string]int64, error) {
	all := make(map[string]int64, len(ids))
	for some := range slices.Chunk(ids, monthsAtOnce) {
		args, marks := []any{millis(month)}, make([]string, len(some))
		for i, id := range some {
			args = append(args, id)
			marks[i] = "$" + strconv.Itoa(i+2)
		}
		err := s.reader(ctx).rows(query+strings.Join(marks, ", ")+")", args, func(scan scanner) error {
			var id string
			var n int64
			err := scan(&id, &n)
			all[id] = n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
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

// UserUsage returns what all apps of an account used, also those that are gone.
func (s *Store) UserUsage(ctx context.Context, id string, span Span) (*OwnedUsage, error) {
	return s.ownedUsage(ctx, "user", `SELECT a.id, `+usageSums+`
		FROM users a LEFT JOIN usage u ON u.user_id = a.id AND u.hour >= $2 AND u.hour < $3
		WHERE a.id = $1 GROUP BY a.id, u.hour ORDER BY u.hour`, id, span)
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

// UsageBy is by whom usage is summed up.
type UsageBy string

// By whom it can be.
const (
	ByUser  UsageBy = "user"
	ByApp   UsageBy = "app"
	ByTopic UsageBy = "topic"
)

// TopUsage is what one of those who use most used in all.
type TopUsage struct {
	ID, UserID string // UserID is the account that answers for it
	freshet.Usage
}

// UsageOrders are what TopUsage can be ordered by.
func UsageOrders() []string { return usageNames[:numUnlagged] }

// TopUsage returns those who used most of something in the span, most first. What is not written down yet is not among it.
func (s *Store) TopUsage(ctx context.Context, by UsageBy, order string, span Span, limit int) ([]TopUsage, error) {
	column, known := map[UsageBy]string{ByUser: "u.user_id", ByApp: "u.app_id", ByTopic: "u.topic_id"}[by]
	if !known || !slices.Contains(UsageOrders(), order) {
		return nil, freshet.Errorf(freshet.Invalid, "Usage cannot be ordered so")
	}
	var all []TopUsage
	// The sums of usageSums but for the hour, in whose place stands 0.
	err := s.reader(ctx).rows(`SELECT `+column+`, MAX(u.user_id), 0`+strings.TrimPrefix(usageSums, "u.hour")+` FROM usage u
		WHERE u.hour >= $1 AND u.hour < $2 GROUP BY `+column+` HAVING SUM(u.`+order+`) > 0 ORDER BY SUM(u.`+order+`) DESC, `+column+` LIMIT $3`,
		[]any{millis(span.From), millis(span.To), limit}, func(scan scanner) error {
			var top TopUsage
			var r usageRow
			if err := scan(append([]any{&top.ID, &top.UserID}, r.dest()...)...); err != nil {
				return err
			}
			top.Usage = r.value().Usage
			all = append(all, top)
			return nil
		})
	return all, err
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

// numUnlagged is how many of usageNames come before those of the histogram.
const numUnlagged = 8

// usageNames are the columns that count, in the order of counted and usageRow.dest.
var usageNames = func() []string {
	names := []string{"messages", "bytes", "full_bytes", "publications", "polls", "polls_not_modified", "polls_failed", "connected_ms"}
	for i := range len(freshet.Lags{}) {
		names = append(names, "lag_"+strconv.Itoa(i))
	}
	return names
}()

func counted(u *freshet.Usage) []any {
	values := []any{u.Messages, u.Bytes, u.FullBytes, u.Publications, u.Polls, u.PollsNotModified, u.PollsFailed, u.Connected.Milliseconds()}
	for _, n := range u.Lag {
		values = append(values, n)
	}
	return values
}

// The statements about usage, made once from the names. Sums have casts because PostgreSQL's sums of BIGINT are of another type.
var (
	usageColumns = "u.hour" + eachUsage(func(name string) string { return ", u." + name })
	usageSums    = "u.hour" + eachUsage(func(name string) string { return ", CAST(SUM(u." + name + ") AS BIGINT)" })
)

func eachUsage(part func(name string) string) string {
	var all strings.Builder
	for _, name := range usageNames {
		all.WriteString(part(name))
	}
	return all.String()
}

// usageRow collects the columns of usageColumns and usageSums.
type usageRow struct {
	hour, connected int64
	usage           freshet.Usage
}

func (r *usageRow) dest() []any {
	u := &r.usage
	all := []any{&r.hour, &u.Messages, &u.Bytes, &u.FullBytes, &u.Publications, &u.Polls, &u.PollsNotModified, &u.PollsFailed, &r.connected}
	for i := range u.Lag {
		all = append(all, &u.Lag[i])
	}
	return all
}

func (r *usageRow) value() freshet.UsageHour {
	r.usage.Connected = time.Duration(r.connected) * time.Millisecond
	return freshet.UsageHour{Hour: fromMillis(r.hour), Usage: r.usage}
}
