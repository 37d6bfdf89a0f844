package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Mode says what a subscription gets after the first document.
type Mode int

// The modes. Patches need less traffic; the document is at hand in both.
const (
	Patches   Mode = iota // what changed, as JSON Patch
	Snapshots             // the whole document each time
)

// SubscribeOptions are what a subscription may have. The zero value is good for a server in development.
type SubscribeOptions struct {
	// Key is the app's subscriber key; a server in production requires one.
	Key string
	// SignatureKey is the app's signature key, for apps that require signed requests.
	SignatureKey string
	// Filter names the items wanted of an item topic; empty for all.
	Filter []string
	// Mode is Patches by default.
	Mode Mode
	// Compress asks for a compressed stream.
	Compress bool
	// Headers are for the target of a subscription by URL, such as Authorization. Names must begin with X- otherwise.
	Headers http.Header
	// LastEventID and Document go on where an earlier subscription ended: the ID of its last event, and the document then.
	// In Snapshots mode the ID is enough.
	LastEventID string
	Document    []byte
	// Silence is how long a connection may say nothing before it counts as dead; 25 s by default, since servers send a
	// heartbeat every 10 s.
	Silence time.Duration
	// FailFast ends the subscription when the first attempt to connect fails. Later ones are repeated in any case.
	FailFast bool
	// OnState hears of connections that come and go. It is called from the loop that ranges over the events.
	OnState func(State)
	// OnBytes sees everything that comes, decompressed, before it is understood. It must not keep the slice.
	OnBytes func([]byte)
}

// State is what a connection is doing.
type State struct {
	Phase Phase
	Err   error         // Waiting: why the last connection ended; io.EOF if the server just closed it
	Retry time.Duration // Waiting: when the next attempt is
}

// Phase is where in its life a connection is.
type Phase int

// The phases.
const (
	Connecting Phase = iota
	Open
	Waiting // for the next attempt
)

// EventKind says what an event brings.
type EventKind string

// The kinds of events.
const (
	Snapshot EventKind = "snapshot" // a whole document
	Patch    EventKind = "patch"    // what changed
	Failure  EventKind = "error"    // something is wrong, and the stream goes on
)

// Event is something that happened to a topic.
type Event struct {
	Kind EventKind
	ID   string // a place in the topic's history; empty for a Failure
	Data []byte // as it came: a document, a JSON Patch or an error object
	// Document is the whole document after the event, as compact JSON; nil while there is none. It is shared: do not modify it.
	Document []byte
	// Err is what is wrong, for a Failure only.
	Err *StreamError
}

// Subscribe follows a topic, given by its id, or a URL that the server shall poll (which creates the topic while somebody is
// subscribed). The loop that ranges over it receives the events; the last pair has an error: what ended ctx, a *[StreamError] that
// is Fatal, or another one that trying again cannot mend. Connections that break are made again, and nothing is lost or
// repeated.
func (c *Client) Subscribe(ctx context.Context, topicOrURL string, o SubscribeOptions) iter.Seq2[Event, error] {
	return c.Stream(topicOrURL, o).Events(ctx)
}

// source is where a stream is and what of its address is signed.
type source struct {
	url    string
	signed string
}

// locate understands a topic's id, its whole address on the subscriber interface, and the URL of a target.
func (c *Client) locate(topicOrURL string) (source, error) {
	const topics = "/v1/topics/"
	text := strings.TrimSpace(topicOrURL)
	if path, ok := strings.CutPrefix(text, c.subscriber+"/"); ok {
		text = path
		if id, ok := strings.CutPrefix("/"+path, topics); ok {
			text = id
		}
	}
	switch {
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		if strings.ContainsAny(text, "\r\n\t #") {
			return source{}, errors.New("client: the URL must not have spaces or a fragment")
		}
		return source{url: c.subscriber + "/" + text, signed: text}, nil
	case text == "" || strings.ContainsAny(text, "/?#% \t\r\n"):
		return source{}, errors.New("client: subscribe to a topic's id or to a URL that begins with http:// or https://")
	}
	return source{url: c.subscriber + topics + text, signed: topics + text}, nil
}
