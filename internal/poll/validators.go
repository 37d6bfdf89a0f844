package poll

import "time"

// How often a poll asks for the whole document although the last one may still be good: against servers whose validators
// are stuck, and so that a document that never changes does not expire.
const (
	fullEvery  = 60
	fullWithin = 10 * time.Minute
)

// validators decide between conditional requests and full ones. They are those of the newest document that was published; what was not
// published is asked for again.
type validators struct {
	etag         string
	lastModified string
	polls        int       // since the last full request
	fullAt       time.Time // when that was
}

// next returns the validators for the next request, empty for a full one. A document that may expire is asked for in full within a quarter
// of its time to live; 0 is none.
func (v *validators) next(now time.Time, ttl time.Duration) (etag, lastModified string) {
	within := fullWithin
	if ttl > 0 {
		within = min(within, ttl/4)
	}
	if v.polls++; v.polls >= fullEvery || now.Sub(v.fullAt) >= within {
		v.polls = 0
		return "", ""
	}
	return v.etag, v.lastModified
}

// keep takes the validators of a document that was asked for at that time and published.
func (v *validators) keep(r *response, at time.Time) {
	*v = validators{etag: r.etag, lastModified: r.lastModified, fullAt: at}
}

// forget makes the next request a full one.
func (v *validators) forget() { v.etag, v.lastModified, v.polls = "", "", 0 }
