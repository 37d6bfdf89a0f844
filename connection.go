package freshet

import "time"

// Connection is a subscriber's open stream.
type Connection struct {
	ID      string
	Node    string // the process that serves it
	UserID  string
	AppID   string
	TopicID string

	Since     time.Time
	Remote    string // address and port of the other end, which may be a proxy's
	Mode      string // patch or snapshot
	Encoding  string // identity or compressed
	Transport string // loop or goroutine
	Filtered  bool   // it gets some items only

	Bytes  uint64 // sent
	Lag    uint64 // versions it has not got yet
	Behind bool   // it does not take bytes at present
}

// ConnectionFilter selects connections. What is empty selects all.
type ConnectionFilter struct{ UserID, AppID, TopicID string }

// Refusal is an error that subscribers of a topic were answered with, or their streams ended, lately.
type Refusal struct {
	Code    int
	Message string
	Count   uint64
	Last    time.Time
}
