package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// stage is one step of starting the process, and its opposite. Stages start in order, each once the one before it
// works, and stop in reverse.
type stage struct {
	name     string
	start    func(ctx context.Context) error // returns once the part works; nil if there is nothing to do
	stop     func(ctx context.Context) error // returns once the part has let go; nil if there is nothing to do
	patience time.Duration                   // how long stop may take; 0 means stopPatience
}

// stopPatience is what a part gets to let go of its resources. It does not shrink when the drain before it took all
// its time: a database must be closed properly however slow the clients were.
const stopPatience = 5 * time.Second

// stages knows which of its steps have been started. It is not safe for concurrent use: Run owns it.
type stages struct {
	all     []stage
	started int
}

// start stops at the first step that fails; stop then undoes those before it.
func (s *stages) start(ctx context.Context) error {
	for i := range s.all {
		st := &s.all[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if st.start != nil {
			if err := st.start(ctx); err != nil {
				return err
			}
		}
		s.started = i + 1
	}
	return nil
}

// stop runs even after ctx of start has ended, and goes on when a step fails.
func (s *stages) stop(log *slog.Logger) error {
	var errs []error
	for ; s.started > 0; s.started-- {
		st := &s.all[s.started-1]
		if st.stop == nil {
			continue
		}
		log.Debug("stopping", "stage", st.name)
		ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(st.patience, stopPatience))
		if err := st.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.name, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}
