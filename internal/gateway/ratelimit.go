package gateway

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
)

// period is a window of the clock, in UTC: every second, minute, … has a counter of its own.
type period struct {
	name  string
	begin func(t time.Time) time.Time
	next  func(begin time.Time) time.Time
}

func fixed(name string, d time.Duration) period {
	return period{name,
		func(t time.Time) time.Time { return t.Truncate(d) }, // zero time is midnight, so this is UTC
		func(b time.Time) time.Time { return b.Add(d) }}
}

// periods, the shortest first.
var periods = [...]period{
	fixed("second", time.Second), fixed("minute", time.Minute), fixed("hour", time.Hour), fixed("day", 24*time.Hour),
	{"month",
		func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) },
		func(b time.Time) time.Time { return b.AddDate(0, 1, 0) }},
	{"year",
		func(t time.Time) time.Time { return time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC) },
		func(b time.Time) time.Time { return b.AddDate(1, 0, 0) }},
}

// rateLimiting limits how often a consumer, or an address where nobody is known, may call an API.
type rateLimiting struct {
	limits  []limit // the shortest period first
	counter httpkit.Counter
	now     func() time.Time
}

type limit struct {
	period
	most                         int64
	mostText                     []string
	limitHeader, remainingHeader string
}

func newRateLimiting(c registry.Config, g *Gateway) (plugin, error) {
	p := &rateLimiting{counter: g.counter, now: g.now}
	for _, w := range periods {
		if n, ok := c.Number(w.name); ok {
			p.limits = append(p.limits, limit{period: w, most: n, mostText: []string{itoa(n)},
				limitHeader: "X-RateLimit-Limit-" + w.name, remainingHeader: "X-RateLimit-Remaining-" + w.name})
		}
	}
	return p, nil
}

var tooManyAnswer = &answer{status: http.StatusTooManyRequests, message: "API rate limit exceeded"}

// grace is how long counters outlive their window: clocks of nodes differ a little.
const grace = 10 * time.Second

// access counts the request in every window, and takes it back when one of them is full: what is refused uses nothing
// up. Under concurrent requests exactly as many pass as the tightest window allows. A request that will be refused by
// a longer window is counted in the shorter ones for a moment, but whoever that could turn away is refused by the longer
// one as well.
//
// Where the counter cannot be reached, requests pass: losing a limit for a while is better than losing the API.
func (p *rateLimiting) access(x *exchange) *answer {
	now := p.now().UTC()
	who := p.identity(x)
	ctx := x.r.Context()
	var left [len(periods)]int64
	var names [len(periods)]string
	full := -1
	var opens time.Duration
	for i := range p.limits {
		l := &p.limits[i]
		begin := l.begin(now)
		remains := l.next(begin).Sub(now)
		names[i] = counterName(x.route.api.ID, who, l.name, begin)
		delta := int64(1)
		if full >= 0 {
			delta = 0 // only to tell where it stands
		}
		sum, err := p.counter.Add(ctx, names[i], delta, remains+grace)
		if err != nil {
			left[i] = l.most
			continue
		}
		left[i] = max(0, l.most-sum)
		if full < 0 && sum > l.most {
			full, opens = i, remains
		}
	}
	if full >= 0 {
		p.takeBack(x, names[:full+1], left[:])
	}
	for i := range p.limits {
		l := &p.limits[i]
		x.header = append(x.header, mark{l.limitHeader, l.mostText})
		x.set(l.remainingHeader, itoa(left[i]))
	}
	if full < 0 {
		return nil
	}
	x.set("Retry-After", itoa(int64((opens+time.Second-1)/time.Second)))
	return tooManyAnswer
}

func (p *rateLimiting) takeBack(x *exchange, names []string, left []int64) {
	for i, name := range names {
		// Not if the client hangs up in between: the count would stay too high.
		sum, err := p.counter.Add(context.WithoutCancel(x.r.Context()), name, -1, grace)
		if err == nil {
			left[i] = max(0, p.limits[i].most-sum)
		}
	}
}

func (p *rateLimiting) identity(x *exchange) string {
	if x.consumer != nil {
		return x.consumer.ID
	}
	return httpkit.ClientAddress(x.r)
}

// counterName is made for every request, so it is made in one go.
func counterName(api, who, period string, begin time.Time) string {
	var room [160]byte
	name := append(room[:0], "gateway "...)
	for _, part := range [...]string{api, who, period} {
		name = append(append(name, part...), ' ')
	}
	return string(strconv.AppendInt(name, begin.Unix(), 10))
}
