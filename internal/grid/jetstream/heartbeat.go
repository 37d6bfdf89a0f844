package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// beatEvery is how often a node writes a heartbeat, looks for what got lost, and tells the others that it is there.
const beatEvery = 2 * time.Second

// heartbeat writes something small to every stream with documents now and then: an answer proves that a majority of the servers works.
// Without one it tries what can help. It also notices streams that were emptied: the heartbeat before is not there any more.
type heartbeat struct {
	link    *link
	streams *streams
	clock   *clock
	health  *health
	emptied func(*stream) // called for a stream that may have been emptied

	last map[*stream]uint64 // the sequence of this node's last heartbeat; owned by run
}

func newHeartbeat(s *streams, c *clock, h *health, emptied func(*stream)) *heartbeat {
	return &heartbeat{link: s.link, streams: s, clock: c, health: h, emptied: emptied, last: make(map[*stream]uint64)}
}

func (h *heartbeat) run() {
	ctx := h.link.tasks.ctx
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	failed := 0 // in a row
	for beats := 0; ; beats++ {
		if beats%readClockEvery == 0 {
			h.clock.ask(ctx)
		}
		err := h.beatAll()
		switch {
		case err == nil:
			h.health.succeeded()
			failed = 0
		case ctx.Err() != nil:
			return
		default:
			h.health.failed(err)
			h.link.faults.suspect()
			h.link.faults.note()
			failed++
			h.help(failed, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *heartbeat) beatAll() error {
	for _, s := range h.streams.documents {
		began := time.Now()
		seq, err := h.beat(s)
		if err != nil {
			return err
		}
		h.last[s] = seq
		if time.Since(began) > time.Second {
			h.link.faults.missed() // an election, perhaps: its news may not have been told
		}
	}
	return nil
}

// beat writes a heartbeat in place of the last one. If that is not there any more, the stream may have been emptied, and may have
// come far again since: everything is looked at.
func (h *heartbeat) beat(s *stream) (seq uint64, err error) {
	ctx := h.link.tasks.ctx
	w := &write{subject: s.beat, expected: anySequence, ttl: time.Minute, body: seal(nil, nil)}
	last := h.last[s]
	if last > 0 {
		w.expected = last
	}
	if seq, err = s.publish(ctx, w); !hasCode(err, codeWrongSequence) {
		return seq, err
	}
	w.expected = anySequence
	if seq, err = s.publish(ctx, w); err != nil {
		return 0, err
	}
	if seq < last {
		h.link.log.Error("the stream was emptied; documents are lost until they are published again", "stream", s.name)
	}
	h.emptied(s)
	return seq, nil
}

// Heartbeats in a row that fail before something is done about it. An election, of up to seven seconds, is waited for before a node leaves
// its server.
const (
	beatsToRestore = 3
	beatsToLeave   = 4
)

// help does what it can when no majority answers: the server may have lost its peers while others have not, or somebody deleted
// the streams.
func (h *heartbeat) help(failed int, err error) {
	isMissing := errors.Is(err, nats.ErrNoResponders)
	switch {
	case !h.knowsOthers():
		if isMissing && failed%beatsToRestore == 0 {
			h.restoreStreams()
		}
	case failed%(2*beatsToLeave) == beatsToLeave:
		h.link.log.Warn("the NATS server has no majority; trying another one", "server", h.link.conn.ConnectedAddr(), "err", err)
		_ = h.link.conn.ForceReconnect() // fails only if the connection is closed
	case isMissing && failed%(2*beatsToLeave) == 0:
		h.restoreStreams()
	}
}

// knowsOthers reports whether there are servers besides the one that the node is connected to.
func (h *heartbeat) knowsOthers() bool {
	return h.streams.opts.InProcess == nil && len(h.link.conn.Servers()) > 1
}

// restoreStreams makes streams again that somebody deleted.
func (h *heartbeat) restoreStreams() {
	ctx, cancel := context.WithTimeout(h.link.tasks.ctx, readTimeout)
	defer cancel()
	if err := h.streams.ensure(ctx); err != nil {
		h.link.log.Error("streams cannot be restored", "err", err)
	}
}
