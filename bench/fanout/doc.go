// Command fanout measures what one delivery costs: Freshet beside Nchan, Pushpin, a plain net/http server, and a program that
// does nothing but write prepared frames to sockets, which is the limit of the machine. All of them run in turn within one
// run, under the same load generator and the same payloads, on loopback only.
//
// The generator is one process with an event loop per thread; a subscriber costs it a descriptor and some bytes. It counts
// deliveries, checks their order, and takes latency from a time stamp in the payload. What a server costs is read from /proc for
// the server's processes alone, so other work on the machine disturbs, but is not counted.
//
// It deliberately does not measure other machines, TLS, or many topics at once. Linux only: elsewhere it says so and ends.
package main
