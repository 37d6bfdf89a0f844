// Package freshet holds the nouns of the service: users, apps, topics, keys, revisions and the one error type.
//
// It does no I/O and knows no engine. A value that leaves one of its constructors or passes its Validate is
// well formed; whether something exists, and who may touch it, are questions for internal/catalog.
// All types are plain values; none of them is safe for concurrent mutation.
package freshet
