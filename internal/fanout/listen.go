package fanout

import (
	"context"
	"net"
)

// Listen listens for subscribers. Connections inherit their bounds from it: what the kernel keeps for a slow one, and how
// long one that vanished goes unnoticed, also where goroutines serve them. Go's multipath sockets would lose these bounds.
func Listen(ctx context.Context, address string, opts Options) (net.Listener, error) {
	// Heartbeats keep connections alive and notice dead ones; TCP's own would only cost every connect a few system calls.
	lc := net.ListenConfig{KeepAlive: -1, Control: boundListener(orDefault(opts.SendBuffer, defaultSendBuffer))}
	lc.SetMultipathTCP(false)
	return lc.Listen(ctx, "tcp", address)
}

const defaultSendBuffer = 96 << 10
