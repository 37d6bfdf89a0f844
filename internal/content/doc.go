// Package content holds the payload rules: what a publication changes in a topic, and what subscribers see of it.
//
// A topic's [State] at one version is a value that never changes; [Rules] make the next state from a publication and tell
// how two states differ. A snapshot topic's state is the published document. An item topic's state, [Items], is an
// array of items in order of first appearance: a publication replaces the items it contains and leaves the others.
// States share what they have in common, so holding many versions of a large topic is cheap.
//
// Subscribers of an item topic may see a part of it, named by a [Filter]. [Views] keeps all filters of a topic
// that are in use and finds those that a revision concerns by the identifiers of the changed items; filters that do not list
// a changed item cost nothing.
//
// The package does no I/O, knows no clock (times are passed in) and no versions. It does not decide who may publish, what is
// stored where, or when items expire.
//
// Rules, states, deltas and filters are immutable and safe for concurrent use. A Views belongs to one goroutine at a time.
package content
