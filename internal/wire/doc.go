// Package wire speaks the HTTP/1.1 of most requests, below and beside net/http. It exists because net/http's server costs more for a common request
// than what this service does for it. It knows nothing of the service.
//
// # How it works
//
// A [Server] accepts connections in front of an http.Server and serves each in a goroutine. It reads the head of a request, and [Request] understands
// it if it is of the common kind. Then the Server asks its handlers in turn, and each says
//
//   - [Done]: it has answered, and the next request may come;
//   - [Pass]: it wants nothing to do with it. If all say so, or the request is of another kind, the connection is net/http's for good. It comes out
//     of the listener that [Server.Listen] returned, together with every byte that was read.
//
// A handler gets an [Exchange]: the request, its body, and two ways to answer. [Exchange.Response] is an http.ResponseWriter ([ResponseWriter]), for
// any response. [Exchange.Reply] sends bytes that the handler has made itself, for responses that come a thousand times a second.
//
// A handler that forwards requests uses a [Client]. It keeps connections to upstreams, sends a request and reads the response in the same step, and
// watches meanwhile whether the client goes away ([Exchange.Watch]). A [Response] is a short one, read where it lies. All others are read by net/http's parser.
//
// An [Acceptor] stands where most connections are for a handler that needs neither goroutine nor buffers for them, such as an event loop. It accepts bare
// descriptors, reads the first request of each and offers both to a [BareHandler]. Connections that it does not take are passed on like a Server's.
// An [AddressLimit] bounds how many connections each address has, whoever serves them.
//
// A [Guard] stands between net/http and its connections, also those that a Server passes, and refuses requests whose end two readers could see in
// different places. [Secure] adds TLS below any of them.
//
// # What must hold
//
//   - Reject by default. Nothing here decides that a request is wrong: what is not understood, to the byte, is net/http's to judge. What is understood
//     means the same to net/http. FuzzRequest and FuzzResponse hold that.
//   - One alphabet and one set of limits, in alphabet.go, for everything that is read here.
//   - A connection has one owner at a time. Passing it is final: nothing is lent, and nothing comes back.
//   - A handler that passes has done nothing that shows. Once it has counted a request or asked an upstream, it must answer.
//   - A connection that waits has no buffer. Deadlines move with every request, but the socket hears of one only when an earlier one comes true.
//   - Behind a response that broke off, a body that was not read, or a response that says so, the connection is closed.
//   - An upstream that speaks before it is asked is not listened to: its words would be taken for the response to somebody else's request.
//
// # System calls that never sleep
//
// Before a system call that may sleep, Go's scheduler makes ready to give the processor to somebody else, and if the process was idle it also wakes the
// runtime's monitor, which then looks fifty times, every 20 µs, whether it must. A server with a hundred publications a second so spends nearly as much
// on the monitor as on the publications. [ReadNow] and [WriteNow] never sleep, so the scheduler need not hear of them. An error of [syscall.EAGAIN] means
// that there is nothing to be read yet, or no room; package net says when to try again.
package wire
