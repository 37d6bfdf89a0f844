package catalog

import (
	"context"
	"errors"
	"log/slog"

	"github.com/freshet-io/freshet"
)

// signInFailure is why a password was not taken. It is logged and never shown: it would help guessing.
type signInFailure string

// The reasons.
const (
	wrongPassword   signInFailure = "wrong password"
	unknownAccount  signInFailure = "unknown account"
	accountDisabled signInFailure = "account disabled"
	tooManyAttempts signInFailure = "too many attempts"
)

func (r signInFailure) Error() string { return string(r) }

// err is what the caller gets, the same for every reason.
func (r signInFailure) err() error {
	return freshet.Wrap(freshet.Unauthenticated, r, "E-mail or password is wrong")
}

func failureOf(err error) (signInFailure, bool) { return errors.AsType[signInFailure](err) }

// failedSignInLines is how many failed sign-ins a second are logged one by one. Of a flood only the number is.
const failedSignInLines = 10

// logFailedSignIn tells the operator whose password was not taken, where from and why. Accounts appear by their identifier, and e-mails that
// have none as a keyed hash: a person who mistypes may have typed the password there.
func (c *Catalog) logFailedSignIn(ctx context.Context, emailKey, network string, why signInFailure) {
	c.failedSignIns.Log(slog.LevelWarn, "sign-in failed",
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
