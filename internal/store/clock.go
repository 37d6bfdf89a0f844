package store

import (
	"context"
	"time"
)

// Machines have clocks that differ. What they write down for each other, and compare with it, goes by the clock of the database that they
// share.

// Now is the time by the database's clock, as ReadClock last found it. An embedded database has the clock of this machine. It is for
// comparing with what is stored, not for measuring: the clock may be set.
func (s *Store) Now() time.Time { return time.Now().Round(0).Add(time.Duration(s.ahead.Load())) }

// blurred is how long a question may take that tells the time.
const blurred = time.Second

// ReadClock compares the database's clock with that of this machine.
func (s *Store) ReadClock(ctx context.Context) error {
	if s.engine.clock == "" {
		return nil
	}
	var there int64
	sent := time.Now()
	if err := s.reader(ctx).row("SELECT "+s.engine.clock, nil, &there); err != nil {
		return err
	}
	if took := time.Since(sent); took < blurred {
		here := sent.Round(0).Add(took / 2)
		s.ahead.Store(int64(time.UnixMicro(there).Sub(here)))
	}
	return nil
}
