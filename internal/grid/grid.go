// Package grid is what the nodes of a service share while it runs: the newest document of every topic, who is
// subscribed, notices that something changed, small named values and counters.
//
// It holds whole documents, never patches: a node compares what it gets with what it holds, so a lost or merged
// message can only make one patch span more, never break a chain of them. It does not look into documents, does
// not know who may do what, and does not survive a restart in its memory form; the epoch in every position says so.
//
// Every method of an engine is safe for concurrent use.
package grid

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
)

// Grid is one engine: memory within a process, or a cluster's. Errors of kind freshet.Unavailable mean that trying again can
// help; those of writes that may have taken effect are ErrUnknown too.
type Grid interface {
	Documents
	Presence
	Notices
	Claims
	Counters
	Questions

	// Close ends every watch and timer. No callback runs after it returned.
	Close() error
}

// ErrConflict says that a topic's newest document is not the one that a Put expected: read again, and decide again.
var ErrConflict = errors.New("grid: the document changed meanwhile")

// ErrRepeated says that a document was put before, by the name that Once gives it.
var ErrRepeated = errors.New("grid: the document was put before")

// ErrUnknown says that a write may have taken effect, or may not. Errors that are not so changed nothing.
var ErrUnknown = errors.New("grid: the outcome is not known")

// Documents keeps the newest document of each topic until its TTL.
type Documents interface {
	// Document returns the topic's newest document. Nothing published yet, or everything expired, is the zero
	// Document and no error.
	Document(ctx context.Context, topic string) (Document, error)

	// Put stores doc as the topic's newest if expected still is, and returns its position; otherwise it returns
	// ErrConflict. The zero expected means "no document". The grid chooses the position; versions rise within an
	// epoch but need not be consecutive. Once Put returned nil the document is stored and ordered.
	// If doc is named by Once and was put before, it returns ErrRepeated, and the position of that time.
	Put(ctx context.Context, topic string, expected freshet.Position, doc Document) (freshet.Position, error)

	// Recall returns where a document went that Once named, or the zero position if the topic does not remember it: it was not put, or too
	// long ago.
	Recall(ctx context.Context, topic, once string) (freshet.Position, error)

	// Confirm returns nil if the topic's newest document surely is the one at pos, and ErrConflict if it may be another one.
	// What a watch was told last is no proof: the next call may be late.
	Confirm(ctx context.Context, topic string, pos freshet.Position) error

	// Refresh returns once the watches of a topic were told of every document that was put before the call, on any node. An error,
	// after two seconds at most, says that this is not certain; what was told last then is what there is.
	Refresh(ctx context.Context, topic string) error

	// Delete drops the topic's document and its history. A document put later begins a new epoch.
	Delete(ctx context.Context, topic string) error

	// Measure returns how long the newest documents of the topics are together, as they are stored. What it found it keeps in known,
	// so that the next call with it need only look for what is new; it belongs to one caller at a time. Other nodes may store
	// meanwhile.
	Measure(ctx context.Context, topics []string, known *Lengths) (int64, error)

	// Watch calls changed with the topic's present document before it returns, and again whenever the grid learns
	// of another one: one call at a time for a watch, never backwards within an epoch, possibly skipping versions.
	// The zero Document says that there is none any more. changed runs inside Put; it must not block and must not
	// call the grid. stop waits for a call in progress.
	Watch(ctx context.Context, topic string, changed func(Document)) (stop func(), err error)

	// Now is the time by which documents are published and expire. It is the same on all nodes, whatever their clocks say.
	Now() time.Time
}

// Document is a topic's document as the grid carries it.
type Document struct {
	Position freshet.Position // chosen by the grid; Put ignores it
	Content  Content          // opaque to the grid
	At       time.Time        // when it was published, by Now; the TTL counts from here
	Length   int              // in bytes, as subscribers see it; 0 if nobody said: then it is as long as its content

	// Renewal says that the document equals the one it replaces and was only published again: it keeps its position.
	Renewal bool

	// Since, unless zero, is At of the document that this one was made from, for content that tells when its parts were published:
	// Put then returns ErrConflict also if the expected document was published again meanwhile. Milliseconds count.
	Since time.Time

	// Patch leads from the document at PatchFrom to this one, or is nil if that takes the whole document. It only saves
	// work: a node that holds another version than PatchFrom compares for itself.
	Patch     []byte
	PatchFrom freshet.Position

	// Once names the publication, if it may come again because nobody knows whether it was stored. The topic remembers it for a day, with
	// its document, unless 64 others were put meanwhile that are not noted either.
	Once string

	// Noted are names of earlier publications that need not be remembered any longer, because their outcome is known otherwise.
	Noted []string

	// Trace is the traceparent of the publication, for nodes that follow it to their subscribers; empty if nobody does. It reaches
	// watches that are told of a new document, and need not be part of what is read.
	Trace string
}

// Lengths is what Measure found, for the next time. The zero value knows nothing.
type Lengths struct {
	began time.Time // when everything was read
	all   map[string]measured
}

// measured is the length of a topic's document.
type measured struct {
	bytes   int64
	expires time.Time // zero: never
	upTo    uint64    // the sequence of its stream up to which that is so
}

// Content is what a document says. It never changes. Within a process the value that was put comes out again, so that
// nobody has to parse what he wrote himself; what came from another node is
// Raw or Steps.
type Content interface {
	// Bytes returns the form that other nodes can read.
	Bytes() []byte
}

// Raw is content as bytes.
type Raw []byte

// Bytes implements Content.
func (r Raw) Bytes() []byte { return r }

// Steps is content from another node that came in steps: a whole, and what changed since. Without a base the steps lead on
// from the document that the watch was told last.
type Steps struct {
	Base   []byte
	Deltas [][]byte // oldest first
}

// Bytes implements Content. It is the base alone: only whoever made the deltas can apply them.
func (s Steps) Bytes() []byte { return s.Base }

// Sized is content that can tell how much memory it takes without making its bytes.
type Sized interface {
	Content
	Size() int
}

// Incremental is content that can tell what changed since the document that its Put expects. A cluster then need not
// move the whole.
type Incremental interface {
	Content

	// Delta returns the change, or nil if there is no better way than the whole.
	Delta() []byte
}

// IsZero reports whether there is no document.
func (d *Document) IsZero() bool { return d.Position.IsZero() }

// length is what the document counts for Measure.
func (d *Document) length() int64 {
	if d.Length > 0 || d.IsZero() {
		return int64(d.Length)
	}
	return int64(len(d.Content.Bytes()))
}

// isFrom reports whether the document can have been made from the one that was published at a time.
func (d *Document) isFrom(at time.Time) bool {
	return d.Since.IsZero() || d.Since.UnixMilli() == at.UnixMilli()
}

// ErrDoubt says that nobody was found who has joined a topic, and that somebody may have.
var ErrDoubt = freshet.Errorf(freshet.Unavailable, "It is not certain whether anybody is subscribed")

// Presence answers whether anyone is subscribed to a topic, on any node.
type Presence interface {
	// Join announces that this node has a subscriber of the topic, until leave is called. Calls nest.
	Join(ctx context.Context, topic string) (leave func(), err error)

	// Present reports whether any node has joined. A no is certain; for some time after a fault it may not be, which is ErrDoubt.
	Present(ctx context.Context, topic string) (bool, error)

	// OnPresence calls fn when the first node joins a topic and when the last one left. It is a hint: after a lost
	// message only Present tells the truth. fn must not block and must not call the grid.
	OnPresence(fn func(topic string, present bool)) (stop func())
}

// Scope is what a notice is about.
type Scope string

// The scopes of a notice.
const (
	ScopeUser  Scope = "user"
	ScopeApp   Scope = "app"
	ScopeTopic Scope = "topic"

	ScopeSource  Scope = "source"  // of a topic: its data source began or ceased to fail
	ScopePoll    Scope = "poll"    // of a topic: poll it now
	ScopeGateway Scope = "gateway" // registered APIs, plugins, consumers
)

// Notice says "look again at this": what the catalog says about it may have changed. It carries no news itself, so
// a repeated or late one does no harm, and a lost one is made good by the next look.
type Notice struct {
	Scope Scope
	ID    string
}

// Notices reach every node, the sender's own included.
type Notices interface {
	// Notify returns once every node that is up has passed the notice on, or could not be waited for any longer: the notice then
	// reaches it later. Notices about data sources are not waited for.
	Notify(ctx context.Context, n Notice) error

	// Tell passes a notice on to this node only, for whoever found out himself.
	Tell(n Notice)

	// OnNotice calls fn for each notice. fn must not block and must not call back into whoever sends notices.
	OnNotice(fn func(Notice)) (stop func())
}

// Claims are small named values that disappear by themselves. Leases are claims whose value is the holder; a
// publisher's idempotency keys are claims whose value is the outcome; a failing data source is a claim whose value is
// the failure.
type Claims interface {
	// Value returns the value of name, empty if it is not set.
	Value(ctx context.Context, name string) (string, error)

	// Swap sets name to new for ttl if its value is old, and returns the value it has afterwards. The empty value
	// means "not set", so Swap(name, "", me, ttl) acquires, Swap(name, me, me, ttl) renews and
	// Swap(name, me, "", 0) releases.
	Swap(ctx context.Context, name, old, new string, ttl time.Duration) (now string, err error)
}

// Counters are sums over all nodes.
type Counters interface {
	// Add adds delta, which may be 0 or negative, and returns the sum. A counter that nobody added to for ttl is 0
	// again.
	Add(ctx context.Context, counter string, delta int64, ttl time.Duration) (sum int64, err error)

	// Spend adds 1 to a counter that is held against a limit, and returns the sum. No more than limit calls get a sum within
	// it. While the limit is far, nodes may take several at once and give back soon what they did not use.
	Spend(ctx context.Context, counter string, limit int64, ttl time.Duration) (sum int64, err error)
}

// Questions are what nodes ask each other: what only another one knows, or may do. Answers are for now; nothing is stored.
type Questions interface {
	// Answer has fn answer the questions of a name on this node, until stop is called. There is one fn for a name. It runs in a
	// goroutine of its own; errors that are *freshet.Error reach whoever asked, without their cause.
	Answer(name string, fn Answerer) (stop func())

	// Ask has any one node answer. It is of kind freshet.Unavailable if no node answers to the name, or not in time.
	Ask(ctx context.Context, name string, question []byte) ([]byte, error)

	// AskAll has every node answer that answers to the name, this one included. A node that does not in time is in the list, with
	// an error.
	AskAll(ctx context.Context, name string, question []byte) []Answer
}

// Answerer answers questions. It must not keep the question.
type Answerer func(ctx context.Context, question []byte) ([]byte, error)

// Answer is what one node said.
type Answer struct {
	Node string
	Data []byte
	Err  error
}
