package poll

import "time"

// attendance is whether somebody is subscribed. It is guarded by source.mu.
type attendance struct {
	present bool
	leaving *time.Timer // runs while nobody is; nil: it does not
	parked  bool        // the source is kept only to remember what the target asked for
}

// arrive tells that somebody is subscribed.
func (a *attendance) arrive() {
	a.present = true
	a.cancelLeaving()
}

// leaveAfter has gone called unless somebody comes before.
func (a *attendance) leaveAfter(wait time.Duration, gone func()) {
	a.leaving = time.AfterFunc(wait, gone)
}

func (a *attendance) cancelLeaving() {
	if a.leaving != nil {
		a.leaving.Stop()
		a.leaving = nil
	}
}

// isOnce reports whether nobody was ever there: the source was made for a single poll.
func (a *attendance) isOnce() bool { return !a.present && a.leaving == nil }
