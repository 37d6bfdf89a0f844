// Package store keeps users, sessions, apps, keys, topics, secrets and the audit trail in SQL: one text for the
// embedded SQLite and for PostgreSQL, with the migrations that lead to it.
//
// It deliberately knows no rules. Who may do what, what is valid, and what happens to live streams belong to
// internal/catalog; the store only promises that what it was given is kept, is unique where it must be, and goes
// away together. It caches nothing.
//
// Every read is one SQL statement. Every write happens inside Store.Update, so that the catalog composes several
// into one atomic act; when Update returns nil, the act is on disk. Times are kept in milliseconds and come back
// in UTC. Keys are kept in clear, because their owner can read them again; on disk only the owner of the process can
// read them.
//
// A Store is safe for concurrent use. A Tx belongs to the goroutine that runs the function given to Update and must
// not outlive it.
package store
