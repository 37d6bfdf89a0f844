package manage

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/histogram"
	"github.com/freshet-io/freshet/internal/usage"
)

// Usage knows what was used and not written down yet. The meter is one.
type Usage interface {
	IsSpent(usage.Owner) bool // its messages of this month are used up
	Hours(span catalog.Span, match func(usage.Place) bool, read func() ([]freshet.UsageHour, error)) ([]freshet.UsageHour, error)
}

// UsageCounts is exported because the library looks only into such structs where they are embedded.
type UsageCounts struct {
	Messages          int64 `json:"messages" example:"1200" doc:"Snapshots and patches handed to subscribers; errors and heartbeats are none"`
	Bytes             int64 `json:"bytes" example:"96000" doc:"Sent to subscribers, with headers, errors and heartbeats; without what TLS, HTTP/2 and chunks add, and without what those got who were refused"`
	FullBytes         int64 `json:"full_bytes" example:"2400000" doc:"What that would have been had every event carried the whole document; an estimate for compressed streams"`
	BytesSaved        int64 `json:"bytes_saved" example:"2304000" doc:"The difference"`
	Publications      int64 `json:"publications" example:"100" doc:"Taken from publishers, and from polls that brought a document"`
	Polls             int64 `json:"polls" example:"0" doc:"Requests to the data source"`
	PollsOK           int64 `json:"polls_ok" example:"0" doc:"Those that brought a document"`
	PollsNotModified  int64 `json:"polls_not_modified" example:"0" doc:"Those answered with 304"`
	PollsFailed       int64 `json:"polls_failed" example:"0" doc:"Those that brought neither"`
	ConnectionSeconds int64 `json:"connection_seconds" example:"3600" doc:"Time that all subscribers together were connected"`

	DeliveryLag deliveryLag `json:"delivery_lag" doc:"How long deliveries to subscribers that keep up took, from the change to the socket"`
}

// deliveryLag has the counts too: percentiles of two reports cannot be added or subtracted, counts can.
type deliveryLag struct {
	P50    *float64 `json:"p50_ms" example:"0.4" doc:"Milliseconds that half of them took at most; null if there were none"`
	P95    *float64 `json:"p95_ms" example:"2.1"`
	P99    *float64 `json:"p99_ms" example:"6.3"`
	Counts []int64  `json:"counts" nullable:"false" doc:"Deliveries by the bounds of the report: the first number is of those at or below the first bound, the last one of those above the last bound"`
}

func showLag(l *freshet.Lags) deliveryLag {
	out := deliveryLag{Counts: l[:]}
	if *l == (freshet.Lags{}) {
		return out
	}
	at := func(q float64) *float64 {
		ms := math.Round(float64(histogram.Quantile((*[histogram.Buckets]int64)(l), q).Microseconds())) / 1000
		return &ms
	}
	out.P50, out.P95, out.P99 = at(0.5), at(0.95), at(0.99)
	return out
}

// lagBounds are those of every count of delivery lag, in milliseconds.
func lagBounds() []float64 {
	var all []float64
	for _, b := range histogram.Bounds() {
		all = append(all, float64(b.Microseconds())/1000)
	}
	return all
}

type usageHour struct {
	Hour time.Time `json:"hour" doc:"When the hour began"`
	UsageCounts
}

type usageReport struct {
	From  time.Time   `json:"from" doc:"The first hour"`
	To    time.Time   `json:"to" doc:"The end of the last hour"`
	Hours []usageHour `json:"hours" nullable:"false" doc:"Hours in which something was used, oldest first"`
	Total UsageCounts `json:"total" doc:"The sum of the hours"`

	DeliveryLagBounds []float64 `json:"delivery_lag_bounds_ms" nullable:"false" doc:"Milliseconds that part the counts of delivery_lag"`
}

func showUsage(u *freshet.Usage) UsageCounts {
	return UsageCounts{
		Messages: u.Messages, Bytes: u.Bytes, FullBytes: u.FullBytes, BytesSaved: u.Saved(), Publications: u.Publications,
		Polls: u.Polls, PollsOK: u.PollsOK(), PollsNotModified: u.PollsNotModified, PollsFailed: u.PollsFailed,
		ConnectionSeconds: int64(u.Connected / time.Second), DeliveryLag: showLag(&u.Lag),
	}
}

// Spanning is the query of every report of usage.
type Spanning struct {
	From string `query:"from" example:"2026-01-01T00:00:00Z" doc:"The first hour: RFC 3339, or milliseconds since 1970; a day before to by default"`
	To   string `query:"to" example:"2026-01-02T00:00:00Z" doc:"The time up to which hours are wanted, in the same forms; now by default"`

	span catalog.Span
}

// Bounds of a report.
const (
	usualSpan   = 24 * time.Hour
	longestSpan = 93 * 24 * time.Hour
)

// Resolve reads the times; whole hours are answered, so they are widened to those.
func (s *Spanning) Resolve(huma.Context) []error {
	var errs []error
	read := func(name, text string, standard time.Time) time.Time {
		if text == "" {
			return standard
		}
		at, ok := parseTime(text)
		if !ok {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + name, Message: "must be a time such as 2026-01-01T00:00:00Z, or milliseconds"})
		}
		return at
	}
	s.span.To = read("to", s.To, time.Now()).UTC().Add(time.Hour - 1).Truncate(time.Hour)
	s.span.From = read("from", s.From, s.span.To.Add(-usualSpan)).UTC().Truncate(time.Hour)
	switch {
	case len(errs) > 0:
	case s.span.From.After(s.span.To):
		errs = append(errs, &huma.ErrorDetail{Location: "query.from", Message: "must be before to"})
	case s.span.To.Sub(s.span.From) > longestSpan:
		errs = append(errs, &huma.ErrorDetail{Location: "query.from", Message: "must be at most 93 days before to"})
	}
	return errs
}

// parseTime reads both forms. Years beyond those of RFC 3339 could not be shown.
func parseTime(text string) (time.Time, bool) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), ms >= 0 && ms < 253_402_300_800_000
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil && at.Unix() >= 0
}

const usageRules = "By the hour of UTC, with what was counted until now on any node."

func (a *api) usage(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "app-usage", Method: http.MethodGet, Path: "/apps/{app_id}/usage", Tags: []string{appsTag}, Security: signedIn,
		Summary: "What an app used", Description: "All its topics together, also those that are gone. " + usageRules,
	}, func(ctx context.Context, in *struct {
		AppPath
		Spanning
	}) (*body[usageReport], error) {
		return a.report(in.span, func(p usage.Place) bool { return p.AppID == in.AppID }, func() ([]freshet.UsageHour, error) {
			return a.Catalog.AppUsage(ctx, actor(ctx), in.AppID, in.span)
		})
	})
	handle(a, h, huma.Operation{
		OperationID: "user-usage", Method: http.MethodGet, Path: "/users/{user_id}/usage", Tags: []string{usersTag}, Security: signedIn,
		Summary: "What an account used", Description: "All its apps together, also those that are gone. " + usageRules,
	}, func(ctx context.Context, in *struct {
		UserPath
		Spanning
	}) (*body[usageReport], error) {
		return a.report(in.span, func(p usage.Place) bool { return p.UserID == in.UserID }, func() ([]freshet.UsageHour, error) {
			return a.Catalog.UserUsage(ctx, actor(ctx), in.UserID, in.span)
		})
	})
	handle(a, h, huma.Operation{
		OperationID: "topic-usage", Method: http.MethodGet, Path: "/topics/{topic_id}/usage", Tags: []string{topicsTag}, Security: signedIn,
		Summary: "What a topic used", Description: usageRules,
	}, func(ctx context.Context, in *struct {
		TopicPath
		Spanning
	}) (*body[usageReport], error) {
		return a.report(in.span, func(p usage.Place) bool { return p.TopicID == in.TopicID }, func() ([]freshet.UsageHour, error) {
			return a.Catalog.TopicUsage(ctx, actor(ctx), in.TopicID, in.span)
		})
	})
}

func (a *api) adminUsage(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "admin-usage", Method: http.MethodGet, Path: "/admin/usage", Tags: []string{adminTag}, Security: signedIn,
		Summary: "What everybody used", Description: usageRules,
	}, func(ctx context.Context, in *Spanning) (*body[usageReport], error) {
		return a.report(in.span, func(usage.Place) bool { return true }, func() ([]freshet.UsageHour, error) {
			return a.Catalog.Usage(ctx, actor(ctx), in.span)
		})
	})
}

type topUsage struct {
	ID   string `json:"id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Of the user, app or topic; it may be gone meanwhile"`
	User string `json:"user" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"The account that answers for it"`
	UsageCounts
}

type topReport struct {
	From  time.Time  `json:"from" doc:"The first hour"`
	To    time.Time  `json:"to" doc:"The end of the last hour"`
	Items []topUsage `json:"items" nullable:"false" doc:"Most first"`

	DeliveryLagBounds []float64 `json:"delivery_lag_bounds_ms" nullable:"false" doc:"Milliseconds that part the counts of delivery_lag"`
}

func (a *api) adminTopUsage(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "admin-top-usage", Method: http.MethodGet, Path: "/admin/usage/top", Tags: []string{adminTag}, Security: signedIn,
		Summary: "Who used most", Description: "What was written down, which is everything but the last 10 seconds.",
	}, func(ctx context.Context, in *struct {
		Spanning
		By    string `query:"by" enum:"user,app,topic" default:"user" doc:"By whom usage is summed up"`
		Order string `query:"order" enum:"messages,bytes,full_bytes,publications,polls,polls_not_modified,polls_failed,connected_ms" default:"messages" doc:"Of what most comes first; who used nothing of it is left out"`
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"10" doc:"How many"`
	}) (*body[topReport], error) {
		found, err := a.Catalog.TopUsage(ctx, actor(ctx), catalog.UsageBy(in.By), in.Order, in.span, in.Limit)
		if err != nil {
			return nil, err
		}
		out := topReport{From: in.span.From, To: in.span.To, Items: make([]topUsage, len(found)), DeliveryLagBounds: lagBounds()}
		for i := range found {
			out.Items[i] = topUsage{found[i].ID, found[i].UserID, showUsage(&found[i].Usage)}
		}
		return &body[topReport]{Body: out}, nil
	})
}

func (a *api) report(span catalog.Span, match func(usage.Place) bool, read func() ([]freshet.UsageHour, error)) (*body[usageReport], error) {
	hours, err := a.Usage.Hours(span, match, read)
	if err != nil {
		return nil, err
	}
	out := usageReport{From: span.From, To: span.To, Hours: make([]usageHour, len(hours)), DeliveryLagBounds: lagBounds()}
	var total freshet.Usage
	for i := range hours {
		out.Hours[i] = usageHour{hours[i].Hour, showUsage(&hours[i].Usage)}
		total.Add(hours[i].Usage)
	}
	out.Total = showUsage(&total)
	return &body[usageReport]{Body: out}, nil
}
