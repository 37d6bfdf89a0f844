// Package jetstream is the grid of a cluster, as one of its nodes sees it: documents, values, counters and notices in streams of NATS
// JetStream, presence and news over core NATS. Nodes speak to NATS only, never to each other.
//
// # Parts
//
// A Grid embeds one part for each contract of package grid: documents, presence, notices, values, counters with reservations, and
// questions. They share a link (the connection, the goroutines, what is known of faults) and stand on the type stream. A heartbeat
// proves every two seconds that a majority works; a second goroutine looks for what got lost.
//
// # What a stream guarantees
//
// A stream keeps one message for each subject, the last one. Every message has a sequence, which rises within the stream.
//
// A conditional store (stream.store) replaces a message only if the last sequence of its subject still is the expected one, and is
// acknowledged once a majority of the servers has stored it. So of two writers that expect the same message one wins, and the order of
// sequences is the order of writes.
//
// An acknowledgement can get lost. Every message therefore carries marks: random numbers that name its own write and the seven before
// it. A writer without an answer writes again. If it is told that the subject moved on, it reads the message and looks for its own
// mark: as the first one, the write is there; as a later one, it took effect and was replaced (errOvertaken); if the marks
// reach back to the message that it wanted to replace and its own is not among them, it never took effect (grid.ErrConflict). Documents also tell
// the newest write of each of the last 16 nodes, for writers that were away longer. Otherwise the outcome is not known
// (grid.ErrUnknown), and the publisher is told so.
//
// A majority proof (stream.prove) is a write to another subject of the stream, on condition of the last sequence of the subject in
// question. A server that was the leader, was cut off and does not know it answers reads and says no to writes as if it were; but it
// cannot store. So what only a server said is believed if it is newer than what the node knows, and proven first if it is older.
//
// # Documents
//
// The newest document of a topic is the message of its subject. A record in it says the position, when it was published, how to get
// here from the version before, and the content: inline if it fits; otherwise as references to parts, which are messages of their own
// that are written before and removed after. A large document that changes a little is its base and the deltas since.
//
// A record without a position is a tombstone: the topic was deleted. It is kept for an hour, so that nodes that were away learn
// of the deletion; the next document begins a new epoch. A document whose TTL is over counts as none from that moment by the servers' clock,
// whether the server has removed its message or not; the servers remove it a minute later.
//
// A node has a slot for each topic in use, with the head: the newest message that it has seen. The stream repeats every document to
// the nodes that watch its topic; such a message may get lost, so it only makes things quick. The head moves to a message that is newer:
// one of a later step of the same epoch that has the head in its past, or one of another epoch, or a tombstone, with a higher sequence. It
// never moves back, except to what a majority has proven; if that is an older document of the same epoch, the stream lost what was
// stored, and the document begins a new epoch, because its ids would repeat with other documents.
//
// # After a fault
//
// Whatever may have made a node miss something (a lost link, a slow answer, a full buffer, a heartbeat that failed) sets a flag in faults.
// Every two seconds, and at once after a fault, the node compares: it asks the streams for all messages of its watched topics that are
// newer than what it has verified, for silent topics always, for all topics if the flag is set. What does not fit (a message that lies
// backwards, parts that are missing) makes the topic a suspect, which is read from the leader. The same loop reads the notices
// since the last look and repeats what other nodes may have missed. A heartbeat whose predecessor is not there any more means that the
// stream was emptied; then every topic is a suspect.
//
// # Locks
//
// A slot's lock is held while its watches are called: that makes their order the order of documents. The lock of topics is never held
// while another one is taken. Everything is safe for concurrent use.
package jetstream
