package grid

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Epochs makes the epochs of positions. No two are the same, also of different nodes or after a restart: lost history must never
// look like kept history.
type Epochs struct {
	salt string // the clock alone could repeat itself after a restart on a machine whose clock went back

	mu   sync.Mutex
	last int64 // microseconds
}

// NewEpochs returns a source of epochs whose last letters are random: two in one process, more where nodes could choose the same.
func NewEpochs(letters int) *Epochs { return &Epochs{salt: strings.ToLower(rand.Text()[:letters])} }

// Next returns an epoch that nobody had before.
func (e *Epochs) Next() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = max(e.last+1, time.Now().UnixMicro())
	return strconv.FormatInt(e.last, 36) + e.salt
}
