package freshet

import "time"

// Usage is what was used in some time, by a topic or by everything above it.
type Usage struct {
	Messages         int64         // snapshots and patches handed to subscribers
	Bytes            int64         // sent to subscribers, with headers, errors and heartbeats
	FullBytes        int64         // what that would have been had every event carried the whole document
	Publications     int64         // taken from publishers, and from polls that brought a document
	Polls            int64         // requests to a data source
	PollsNotModified int64         // those answered with 304
	PollsFailed      int64         // those that brought no document and no 304
	Connected        time.Duration // of all subscribers together
	Lag              Lags          // from changes to the subscribers that kept up
}

// Lags counts deliveries by how long they took, in buckets. A histogram knows their bounds; sums of them are exact, which
// percentiles would not be.
type Lags [18]int64

// Add adds other counts.
func (l *Lags) Add(more *Lags) {
	for i, n := range more {
		l[i] += n
	}
}

// Add adds another usage.
func (u *Usage) Add(more Usage) {
	u.Messages += more.Messages
	u.Bytes += more.Bytes
	u.FullBytes += more.FullBytes
	u.Publications += more.Publications
	u.Polls += more.Polls
	u.PollsNotModified += more.PollsNotModified
	u.PollsFailed += more.PollsFailed
	u.Connected += more.Connected
	u.Lag.Add(&more.Lag)
}

// PollsOK is how many polls brought a document.
func (u *Usage) PollsOK() int64 { return max(0, u.Polls-u.PollsNotModified-u.PollsFailed) }

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
