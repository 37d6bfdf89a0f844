// Package grid is what the nodes of a service share while it runs: the newest document of every topic, who is
// subscribed, notices that something changed, small named values and counters. It holds the contracts, and what their engines have in
// common; grid/memory is the engine of a single process, grid/jetstream that of a cluster, and grid/gridtest tests that they do the
// same.
//
// # How it works
//
// Documents are registers with compare-and-swap: Put names the position of the document that it replaces, and fails with ErrConflict
// if that is not the newest any more. Whoever publishes reads, decides and puts, again if it lost the race. A Watch is told of each document,
// possibly of several at once as one.
//
// The grid holds whole documents, never patches: a node compares what it gets with what it has, so a lost or merged
// message can only make one patch span more, never break a chain of them. It does not look into documents and does
// not know who may do what.
//
// Notices carry no news either: they say "look again". Presence says whether anyone is subscribed to a topic. Values are named texts
// with a TTL that are swapped on condition of the old one: leases, outcomes, failures. Counters are sums with a TTL. Questions are
// asked of one node or of all, about what only a node knows.
//
// # Invariants
//
//   - A Put that returned nil is stored and ordered. In a cluster a majority has it; in memory it lasts as long as the process.
//   - An error changed nothing, unless it is ErrUnknown: then the Put takes effect once or never, and never after a later one that
//     was acknowledged, because it names what it replaces.
//   - Within an epoch versions rise and never repeat. Documents that were lost, deleted or expired end the epoch: the next one begins
//     another, so that no position ever names two documents.
//   - A document that Once names is stored at most once, as long as the topic remembers it: the name and its position are part of
//     the document (Outcomes) and stored by the same write.
//   - A watch is called by one goroutine at a time and never goes back within an epoch.
//   - Times of documents are by Now, which is the same on all nodes.
//
// Every method of an engine is safe for concurrent use.
package grid

import "errors"

// Grid is one engine: memory within a process, or a cluster's. Errors of kind freshet.Unavailable mean that trying again can
// help; those of writes that may have taken effect are ErrUnknown too.
type Grid interface {
	Documents
	Presence
	Notices
	Values
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
