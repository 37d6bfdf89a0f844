package publish

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/memory"
)

// A bodyPlace is the memory that one long body has. It grows with what was sent, not with what was announced: who announces much
// and sends little must not keep others out.
type bodyPlace struct {
	api   *API
	ctx   context.Context //nolint:containedctx // it lives as long as the request
	owner string
	held  int64
}

const placeRetry = 2 * time.Second

// grow waits until the body may have so many bytes in all. Short ones need no place.
func (p *bodyPlace) grow(bytes int64) error {
	places := p.api.opts.Bodies
	if places == nil || bytes <= firstRead+1 {
		return nil
	}
	var err error
	if p.held == 0 {
		err = places.Acquire(p.ctx, p.owner, bytes)
	} else {
		err = places.Extend(p.ctx, bytes-p.held)
	}
	switch {
	case errors.Is(err, memory.ErrBusy):
		p.api.refused.Add(1)
		e := freshet.Errorf(freshet.Unavailable, "Too many long publications are being sent at once; try again")
		e.RetryAfter, e.Logged = placeRetry, true
		p.api.refusals.Log(slog.LevelWarn, "publication refused for lack of memory", "reason", e.Msg)
		return e
	case err != nil:
		return err
	}
	p.held = bytes
	return nil
}

// leave gives the memory back, once the publication was taken or refused.
func (p *bodyPlace) leave() {
	if p.held > 0 {
		p.api.opts.Bodies.Release(p.held)
	}
}

// Refused returns how many publications were refused because too many were being sent.
func (a *API) Refused() uint64 { return a.refused.Load() }
