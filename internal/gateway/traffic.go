package gateway

import "sync/atomic"

// Traffic is what came to the gateway's listener, and what is under way.
type Traffic struct {
	Accepted, Active int64 // connections
	Writing, Waiting int64 // connections with a request under way, and without
	Requests         int64
}

// traffic counts what comes to the gateway's listener. It is safe for concurrent use.
type traffic struct {
	accepted, ended atomic.Int64 // connections
	begun, answered atomic.Int64 // requests
}

// Traffic tells how busy the listener is.
func (g *Gateway) Traffic() Traffic {
	t := &g.traffic
	// What ends is read first, so that nothing seems to have ended before it began.
	answered, ended := t.answered.Load(), t.ended.Load()
	begun, accepted := t.begun.Load(), t.accepted.Load()
	now := Traffic{Accepted: accepted, Active: accepted - ended, Writing: begun - answered, Requests: begun}
	now.Waiting = max(0, now.Active-now.Writing) // HTTP/2 has more requests than connections
	return now
}

// Opened counts connections; see wire.Server.
func (g *Gateway) Opened(delta int) {
	if delta > 0 {
		g.traffic.accepted.Add(int64(delta))
	} else {
		g.traffic.ended.Add(int64(-delta))
	}
}
