// Package fanout moves frames to sockets.
//
// Subscribers that get the same bytes and end together form a [Group]. Each of them is a [Cursor] into the group's [Feed]: when the feed
// changes, the group is woken, and every member is written what lies between its cursor and the newest frame. There is no queue per
// subscriber. A member whose socket is full keeps the rest of what it is being sent, and nothing else; when it has room again it asks
// the feed anew, and the feed answers with the cheapest way from its cursor to the newest frame.
//
// # How streams are served
//
// HTTP/1.1 connections without TLS on Linux belong to an event loop, one loop per core, and cost neither goroutine nor buffer. TLS, HTTP/2
// and other systems use a goroutine per stream (portable). Both behave alike, and the tests run on both.
//
// A loop gets its connections in two ways. [Fanout.Listen] accepts them as bare descriptors and offers them to a handler, which calls
// [Fanout.Take] for those that are to be streams; net/http never sees these. [Fanout.Serve] takes others over from net/http. The beginning of the
// response is written before a loop has the connection, by the goroutine that brings it.
//
// An event loop works in rounds. In each round it
//
//   - takes events of the kernel from its poller: connections that end, sockets that have room again;
//   - sends heartbeats to connections whose slot in the timing wheel has come up;
//   - ends connections that are stalled for too long, or that a drain has chosen;
//   - takes its inbox: new connections, groups with news, questions of operators, the order to drain or to stop;
//   - has its scheduler give each group with news one slice of members, and writes to those;
//   - adds what its meter counted to the common counters.
//
// With nothing left to do it sleeps until the inbox or the poller wakes it, or the wheel's next tick. Passes over a large group keep a
// distance in time (pacer), so that what is published meanwhile leaves in one write.
//
// # Invariants
//
//   - A socket has one owner. What a loop owns (conn, table, wheel, scheduler, stalls, drain, meter) is touched by its goroutine alone;
//     others leave work in its inbox.
//   - A member's cursor moves only when the bytes before it are with the kernel, or are kept as the rest of a stall. So nobody misses a
//     frame, gets one twice, or gets half of one.
//   - A change of a feed is followed by a whole pass that began after it: a group is noted in the inbox until its feed is about to be
//     asked, and a change during a pass is followed by another pass.
//   - No work is left while a loop sleeps: it declares itself asleep before it looks into its inbox for the last time.
//   - A loop never blocks: writes do not wait, and what a group or a feed is told from a loop must not either.
//   - A group learns of the end of each of its streams exactly once, however it was served and whatever went wrong.
//   - A connection is bounded in time: one that takes nothing for the write timeout is cut, one that must end has endTimeout for what it
//     was sent, one that vanished is noticed within 30 s.
//
// # What it does not know
//
// Topics, documents, keys and error codes: what a frame says, who may have it and when a stream must end is decided above. Everything
// exported is safe for concurrent use.
package fanout
