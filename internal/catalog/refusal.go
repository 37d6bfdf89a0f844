package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// refusal is why a password was not taken. It is logged and never shown: it would help guessing.
type refusal string

// The reasons.
const (
	wrongPassword   refusal = "wrong password"
	unknownAccount  refusal = "unknown account"
	accountDisabled refusal = "account disabled"
	tooManyAttempts refusal = "too many attempts"
)

func (r refusal) Error() string { return string(r) }

// err is what the caller gets, the same for every reason.
func (r refusal) err() error {
	return freshet.Wrap(freshet.Unauthenticated, r, "E-mail or password is wrong")
}

func refused(err error) (refusal, bool) { return errors.AsType[refusal](err) }

// linesPerSecond is how many failed sign-ins are logged one by one. Of a flood only the number is.
const linesPerSecond = 10

// quiet keeps a flood from filling the log.
type quiet struct {
	mu      sync.Mutex
	second  int64
	lines   int
	leftOut int64
}

// admit reports whether there may be a line now, and how many were left out since the last.
func (q *quiet) admit(now time.Time) (leftOut int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if second := now.Unix(); second != q.second {
		q.second, q.lines = second, 0
	}
	if q.lines >= linesPerSecond {
		q.leftOut++
		return 0, false
	}
	q.lines++
	leftOut, q.leftOut = q.leftOut, 0
	return leftOut, true
}

// logRefusal tells the operator whose password was not taken, where from and why. Accounts appear by their identifier, and e-mails that
// have none as a keyed hash: a person who mistypes may have typed the password there.
func (c *Catalog) logRefusal(ctx context.Context, emailKey, network string, why refusal) {
	leftOut, ok := c.quiet.admit(c.now())
	if !ok {
		return
	}
	args := []any{"account", c.nameInLog(ctx, emailKey), "address", network, "reason", string(why)}
	if leftOut > 0 {
		args = append(args, "left_out", leftOut)
	}
	c.log.Warn("sign-in failed", args...)
}

func (c *Catalog) nameInLog(ctx context.Context, emailKey string) string {
	if found, err := c.store.AccountByEmail(ctx, emailKey); err == nil {
		return found.ID
	}
	return "email:" + c.seals.pseudonym("email", emailKey)[:12]
}
