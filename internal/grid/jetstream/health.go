package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
)

// health is when a majority of the servers last proved that it can store something.
type health struct {
	proven atomic.Int64          // in Unix nanoseconds
	cause  atomic.Pointer[error] // of the last failure
}

// proofAge is how long a node may be without the answer of a majority before it calls itself unfit.
const proofAge = 6 * time.Second

func (h *health) succeeded() { h.proven.Store(time.Now().UnixNano()) }

func (h *health) failed(err error) { h.cause.Store(&err) }

// Check returns an error while the servers have not proven for some time that they can store anything.
func (h *health) Check(context.Context) error {
	age := time.Since(time.Unix(0, h.proven.Load()))
	if age < proofAge {
		return nil
	}
	cause := errors.New("no answer")
	if known := h.cause.Load(); known != nil {
		cause = *known
	}
	return freshet.Wrap(freshet.Unavailable, cause, fmt.Sprintf("NATS stored nothing for %d s: %v", int(age.Seconds()), cause))
}
