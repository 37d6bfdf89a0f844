package freshet

import "time"

// Usage is what was used in some time, by a topic or by everything above it.
type Usage struct {
	Messages         int64         // events handed to subscribers
	Bytes            int64         // sent to subscribers, with headers and heartbeats
	FullBytes        int64         // what that would have been had every event carried the whole document
	Publications     int64         // taken from publishers, and from polls that brought a document
	Polls            int64         // requests to a data source
	PollsNotModified int64         // those answered with 304
	Connected        time.Duration // of all subscribers together
}

// Add adds another usage.
func (u *Usage) Add(more Usage) {
	u.Messages += more.Messages
	u.Bytes += more.Bytes
	u.FullBytes += more.FullBytes
	u.Publications += more.Publications
	u.Polls += more.Polls
	u.PollsNotModified += more.PollsNotModified
	u.Connected += more.Connected
}

// Saved is how many bytes were not sent because only changes were.
func (u *Usage) Saved() int64 { return max(0, u.FullBytes-u.Bytes) }

// UsageHour is the usage of one hour of UTC.
type UsageHour struct {
	Hour time.Time
	Usage
}

// Month is the beginning of the calendar month, in UTC, that quotas count in.
func Month(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}
