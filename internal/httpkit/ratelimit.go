package httpkit

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/freshet-io/freshet"
)

// Counter is a sum that all nodes share. The grid is one.
type Counter interface {
	// Add adds delta and returns the sum; a counter that nobody added to for ttl is 0 again.
	Add(ctx context.Context, counter string, delta int64, ttl time.Duration) (sum int64, err error)
}

// Spender is a Counter that knows a cheaper way to count against a limit. The grid is one.
type Spender interface {
	// Spend adds 1 and returns the sum. No more than limit calls get a sum within it.
	Spend(ctx context.Context, counter string, limit int64, ttl time.Duration) (sum int64, err error)
}

// spend counts one request.
func spend(ctx context.Context, counter Counter, name string, limit int64, ttl time.Duration) (int64, error) {
	if s, ok := counter.(Spender); ok {
		return s.Spend(ctx, name, limit, ttl)
	}
	return counter.Add(ctx, name, 1, ttl)
}

// Budget is what is left of a rate in the current window.
type Budget struct {
	Limit     int64 // 0 = unlimited
	Remaining int64
	Reset     time.Duration // until the next window
}

// counterPatience is how long a request waits to be counted. A cluster that elects a leader takes longer, and the request has
// its own reasons to wait for it then.
const counterPatience = time.Second

// Take counts one request against name and reports what is left of limit in this minute, with a TooManyRequests
// error once it is used up. A counter that cannot be reached lets the request through: losing a limit for a while
// is better than losing the service.
func Take(ctx context.Context, counter Counter, name string, limit int64, now time.Time) (Budget, error) {
	b, within := TakeWithin(ctx, counter, name, limit, time.Minute, now)
	if !within {
		e := freshet.Errorf(freshet.TooManyRequests, "More than %d requests in this minute; slow down and try again", limit)
		e.RetryAfter = b.Reset
		return b, e
	}
	return b, nil
}

// TakeWithin is Take for any window, and reports whether the limit is kept.
func TakeWithin(ctx context.Context, counter Counter, name string, limit int64, window time.Duration, now time.Time) (b Budget, within bool) {
	if limit <= 0 {
		return Budget{}, true
	}
	b = Budget{Limit: limit, Remaining: limit, Reset: window - time.Duration(now.UnixNano())%window}
	// Fixed windows: each has a counter of its own, which is forgotten some time after.
	n := now.Unix() / int64(window/time.Second)
	ctx, cancel := context.WithTimeout(ctx, counterPatience)
	defer cancel()
	count, err := spend(ctx, counter, name+" "+strconv.FormatInt(n, 10), limit, 2*window)
	if err != nil {
		return b, true // see Take
	}
	b.Remaining = max(0, limit-count)
	return b, count <= limit
}

// SetHeaders tells the client where it stands: the usual names, and the short one the service is known for.
func (b Budget) SetHeaders(h http.Header) {
	if b.Limit <= 0 {
		return
	}
	limit := strconv.FormatInt(b.Limit, 10)
	h.Set("X-RateLimit-Limit-Minute", limit)
	h.Set("X-RateLimit-Minute", limit)
	h.Set("X-RateLimit-Remaining-Minute", strconv.FormatInt(b.Remaining, 10))
}
