// Package subscribe is the subscriber interface: it reads what a client asks for, and gives it a stream of events or, to old
// browsers, one response at a time.
//
// Errors are events, not statuses: browsers give up for good on anything but 200. Who may subscribe is decided by the catalog, what is
// sent by the router, and how it reaches the socket by fanout.
//
// # The way of one subscriber
//
//   - The request is read (requestTarget, request): which topic, or which data source; by which key; which variant of the document.
//   - The catalog is asked whether this key may subscribe. The same question is one audience.
//   - The quotas count the subscriber in: of the node, the edition, the account and the app (seats).
//   - It enters the group of its audience that gets the same bytes. The first one opens the group, which follows the topic in the
//     router; the others wait for that.
//   - The stream begins with what brings the client to the newest document, and belongs to fanout from then on. A long poll waits for
//     one batch and is answered.
//   - When the stream is over, the registry is told once. It gives the seats back, and the reaper closes a group that nobody is in.
//
// Most connections come as bare descriptors ([Server.ServeBare]), and net/http never sees them. Who joins a group that is open, by a
// question that was just answered, and is limited by nothing, begins in the goroutine that accepted the connection. For everybody else
// a worker asks and waits, with the request as it was read, and then gives the connection to fanout. Long polls, TLS, HTTP/2 and
// unusual requests come through net/http ([Server.ServeHTTP]).
//
// # Streams live on a permission
//
// A permission was given once. When a notice says that a topic, an app or an account changed, the rechecker asks the same question again
// for the audiences that it concerns, and for all of them now and then, since notices can get lost. If the catalog says no, the audience's
// groups end. So deleting a topic, renewing a key and disabling an account need no code here. A catalog that cannot be asked
// ends nothing.
//
// # Invariants
//
//   - Nobody keeps a permission that a notice took away. A subscriber notes how many notices there were before it asks; one that joined
//     after that number changed is asked for again (recheckQueue).
//   - Everybody who entered leaves exactly once, whatever happened in between, and whoever was refused has left nothing behind (quotas).
//   - A group that has ended gets no new members: whoever comes then is judged anew (audiences).
//   - A group is closed after its last member left, and not while it is being opened.
//   - What may run in an event loop (leave) takes no time: it counts, and leaves the rest to others.
//   - An error event is counted, remembered for its topic and logged, with nothing in it that a stranger sent (reports).
//
// A Server is safe for concurrent use. It has goroutines for asking again, for closing groups and for counting seats; streams belong to
// fanout.
package subscribe
