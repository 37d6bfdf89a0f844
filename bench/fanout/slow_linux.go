package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// slow measures what one subscriber that reads 1 KB/s does to the others, against the same load without it.
type slow struct {
	subscribers  int
	publications int64
	perSecond    float64
}

const slowRead = 1 << 10 // bytes per second

// In turns the slow one stays for a while and then stays away as long. While it fills the buffers between it and the server it is no burden,
// and that counts for nothing.
const (
	turn = 10 * time.Second
	fill = 4 * time.Second
)

func (s slow) run(ctx context.Context, b *bench, c *contender) (metrics, error) {
	l := load{subscribers: s.subscribers, payloadLen: 256, publications: s.publications, deliveries: s.perSecond * float64(s.subscribers)}
	without, err := l.run(ctx, b, c)
	if err != nil {
		return nil, err
	}
	var reader *slowReader
	l.beside = func(ctx context.Context, e *endpoint) (func() error, error) {
		var err error
		reader, err = startSlow(ctx, e, b.opts.slowBuffer)
		return reader.finish, err
	}
	with, err := l.run(ctx, b, c)
	if err != nil {
		return nil, err
	}
	inTurns, err := s.takeTurns(ctx, b, c)
	if err != nil {
		return nil, err
	}
	m := metrics{
		p99ms:           inTurns[p99ms],
		otherP99ms:      inTurns[otherP99ms],
		slowP99Ratio:    inTurns[p99ms] / inTurns[otherP99ms],
		rssGrowthMB:     with[rssGrowthMB],
		slowRSSGrowthMB: with[rssGrowthMB] - without[rssGrowthMB],
		slowEndedRight:  0,
		slowCuts:        0,
	}
	if reader.right {
		m[slowEndedRight] = 1
	}
	if reader.cut {
		m[slowCuts] = 1
	}
	b.say("    slow reader: %d bytes, %d events (%d snapshots), %s", reader.bytes, reader.witness.stats.Events, reader.witness.stats.Snapshots, reader.verdict())
	return m, nil
}

// takeTurns measures the others' latency in one run in which a slow one is there half of the time: from one run to the next it differs by
// more than it may by the slow one. The first window is with it, the second without; neither has the time in which it came.
func (s slow) takeTurns(ctx context.Context, b *bench, c *contender) (metrics, error) {
	l := load{subscribers: s.subscribers, payloadLen: 256, publications: 2 * s.publications, deliveries: s.perSecond * float64(s.subscribers)}
	l.meanwhile = func(ctx context.Context, e *endpoint, fleet *fleet) error {
		for ctx.Err() == nil {
			fleet.window.Store(0)
			reader, err := startSlow(ctx, e, b.opts.slowBuffer)
			switch {
			case ctx.Err() != nil && err != nil:
				return nil // while it was connecting
			case err != nil:
				return err
			}
			_ = sleep(ctx, fill)
			fleet.window.Store(1)
			_ = sleep(ctx, turn)
			fleet.window.Store(2)
			reader.leave()
			_ = sleep(ctx, turn)
		}
		return nil
	}
	return l.run(ctx, b, c)
}

// slowReader is a subscriber on a bad line. It reads at full speed once it is told that publishing has ended.
type slowReader struct {
	endpoint *endpoint
	conn     net.Conn
	hurry    atomic.Bool
	ended    chan struct{}

	// Owned by run until ended is closed.
	body    body
	witness witness
	bytes   int64
	final   bool
	err     error

	// Set by finish.
	right, cut bool
}

// startSlow connects it. A small receive buffer makes the server wait for it from the first second on.
func startSlow(ctx context.Context, e *endpoint, buffer int) (*slowReader, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		if buffer == 0 {
			return nil
		}
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer)
		})
	}}
	conn, err := d.DialContext(ctx, "tcp", e.subscribe.String())
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(e.topics[0].request); err != nil {
		conn.Close()
		return nil, err
	}
	r := &slowReader{endpoint: e, conn: conn, ended: make(chan struct{})}
	go r.run()
	return r, nil
}

func (r *slowReader) run() {
	defer close(r.ended)
	defer r.conn.Close()
	var scan scanner
	buf := make([]byte, slowRead/10)
	for !r.final {
		if !r.hurry.Load() {
			time.Sleep(time.Second / 10)
		}
		n, err := r.conn.Read(buf)
		r.bytes += int64(n)
		r.body.feed(buf[:n], func(b []byte) {
			r.witness.feed(b)
			scan.scan(b, func(m mark) { r.final = r.final || m.publisher == finalPublisher && m.seq > 0 })
		})
		if err != nil {
			r.err = err
			return
		}
	}
	// The mark stands before the end of the event, which is needed to dispatch it.
	_ = r.conn.SetReadDeadline(time.Now().Add(time.Second))
	n, _ := r.conn.Read(buf)
	r.body.feed(buf[:n], r.witness.feed)
}

// leave hangs up.
func (r *slowReader) leave() {
	r.conn.Close()
	<-r.ended
}

// finish lets it read what is left and looks at what it holds.
func (r *slowReader) finish() error {
	r.hurry.Store(true)
	select {
	case <-r.ended:
	case <-time.After(settleTimeout):
		r.conn.Close()
		<-r.ended
	}
	r.cut = errors.Is(r.err, io.EOF) || errors.Is(r.err, syscall.ECONNRESET)
	r.witness.finish()
	m, _, _ := lastMark(r.witness.doc["live"])
	r.right = r.final && r.witness.stats.Err == nil && m.publisher == finalPublisher
	return nil
}

func (r *slowReader) verdict() string {
	switch {
	case r.right:
		return "holds the last document"
	case r.cut:
		return fmt.Sprintf("was cut by the server: %v", r.err)
	}
	return fmt.Sprintf("does not hold the last document: %v, %v", r.err, r.witness.stats.Err)
}
