package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// values keeps named texts in cells.
type values struct {
	cells cells
}

// Values stand below "claim" in the streams of every version, and their nodes read each other's.
func newValues(s *stream) *values { return &values{cells{stream: s, kind: "claim"}} }

// Value implements grid.Values.
func (v *values) Value(ctx context.Context, name string) (string, error) {
	found, err := v.cells.read(ctx, v.cells.subject(name))
	return found.text, err
}

// Swap implements grid.Values.
func (v *values) Swap(ctx context.Context, name, old, new string, ttl time.Duration) (string, error) {
	subject := v.cells.subject(name)
	found, known := v.cells.recall(subject)
	if (!known && old != "") || found.text != old {
		var err error
		if found, err = v.cells.read(ctx, subject); err != nil {
			return "", err
		}
	}
	for range maxTries {
		if found.text != old || old == new && new == "" {
			return found.text, nil
		}
		err := v.cells.replace(ctx, subject, found, new, ttl)
		switch {
		case err == nil, errors.Is(err, errOvertaken):
			return new, nil
		case !errors.Is(err, grid.ErrConflict):
			return "", err
		}
		if found, err = v.cells.read(ctx, subject); err != nil {
			return "", err
		}
	}
	return found.text, nil
}
