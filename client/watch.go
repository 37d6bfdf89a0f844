package client

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrSilent means that a connection said nothing, not even a heartbeat, for too long.
var ErrSilent = errors.New("the connection fell silent")

// watchdog ends a connection that stays silent while somebody listens. Time that the program takes to handle an event does
// not count.
type watchdog struct {
	patience time.Duration
	timer    *time.Timer
}

func newWatchdog(patience time.Duration, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{patience: patience}
	w.timer = time.AfterFunc(patience, func() { cancel(fmt.Errorf("%w for %v", ErrSilent, patience)) })
	w.timer.Stop()
	return w
}

func (w *watchdog) wake() { w.timer.Reset(w.patience) }
func (w *watchdog) rest() { w.timer.Stop() }

// watched is a reader under a watchdog.
type watched struct {
	src   io.Reader
	watch *watchdog
}

func (r *watched) Read(p []byte) (int, error) {
	r.watch.wake()
	defer r.watch.rest()
	return r.src.Read(p)
}

// gunzip opens its source at the first read: the header comes when the server has something to say. Streams have no
// checksum at their end, so being cut off is the normal end.
type gunzip struct {
	src io.Reader
	zr  *gzip.Reader
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.zr == nil {
		if g.zr, err = gzip.NewReader(g.src); err != nil {
			return 0, err
		}
	}
	n, err = g.zr.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// tapped shows what passes through.
type tapped struct {
	src  io.Reader
	show func([]byte)
}

func (r *tapped) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	if n > 0 {
		r.show(p[:n])
	}
	return n, err
}
