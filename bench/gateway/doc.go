// Command gateway measures what forwarding one request costs: Freshet's gateway beside nginx, in turns within one run,
// with the same upstream, the same load generator (wrk) and 64 connections, on loopback.
//
// It counts requests and the processor time of the proxy's own processes, from /proc, so other work on the machine
// disturbs but is not counted. The upstream is an nginx of its own that answers from memory.
//
// Beside them stand floors: what the pieces cost that any gateway in Go is built from.
//
// It deliberately does not measure latency, TLS, large bodies or several machines. Linux only: elsewhere it says so and
// ends.
package main
