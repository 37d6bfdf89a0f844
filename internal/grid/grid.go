// Package grid is what the nodes of a service share while it runs: the newest document of every topic, who is
// subscribed, notices that something changed, small named values and counters.
//
// It holds whole documents, never patches: a node compares what it gets with what it holds, so a lost or merged
// message can only make one patch span more, never break a chain of them. It does not look into documents, does
// not know who may do what, and does not survive a restart in its memory form; the epoch in every position says so.
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
