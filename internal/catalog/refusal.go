package catalog

import (
	"context"
	"errors"
	"log/slog"

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

// refusalLines is how many failed sign-ins a second are logged one by one. Of a flood only the number is.
const refusalLines = 10

// logRefusal tells the operator whose password was not taken, where from and why. Accounts appear by their identifier, and e-mails that
// have none as a keyed hash: a person who mistypes may have typed the password there.
func (c *Catalog) logRefusal(ctx context.Context, emailKey, network string, why refusal) {
	c.refusals.Log(slog.LevelWarn, "sign-in failed",
		"account", nameInLog{c, ctx, emailKey}, "address", network, "reason", string(why))
}

// nameInLog is looked up once a line is really written.
type nameInLog struct {
	catalog  *Catalog
	ctx      context.Context
	emailKey string
}

// LogValue implements slog.LogValuer.
func (n nameInLog) LogValue() slog.Value {
	if found, err := n.catalog.store.AccountByEmail(n.ctx, n.emailKey); err == nil {
		return slog.StringValue(found.ID)
	}
	return slog.StringValue("email:" + n.catalog.seals.pseudonym("email", n.emailKey)[:12])
}
