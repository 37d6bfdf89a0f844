package grid

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
)

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
	Known any // of the engine's own type; nobody else looks into it
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

// Counted is what the document counts for Measure.
func (d *Document) Counted() int64 {
	if d.Length > 0 || d.IsZero() {
		return int64(d.Length)
	}
	return int64(len(d.Content.Bytes()))
}

// IsFrom reports whether the document can have been made from the one that was published at a time.
func (d *Document) IsFrom(at time.Time) bool {
	return d.Since.IsZero() || d.Since.UnixMilli() == at.UnixMilli()
}
