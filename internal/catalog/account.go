package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/store"
)

// SignUp makes an account. Anybody may, unless the server is set to let only admins; actor is nil for a stranger. The network is
// where the caller comes from, as for SignIn.
func (c *Catalog) SignUp(ctx context.Context, actor *Actor, user freshet.User, password, network string) (*freshet.User, error) {
	if !c.opts.OpenSignUp && (actor == nil || !actor.Admin()) {
		return nil, freshet.Errorf(freshet.Unauthenticated, "Sign-up is closed on this server; ask its admin for an account")
	}
	user.ID = freshet.NewID()
	user.Role = freshet.RoleUser
	user.Status = freshet.StatusActive
	user.Quotas = freshet.DefaultQuotas
	created, err := c.createUser(ctx, actor, user, password, network)
	if err != nil {
		return nil, err
	}
	return c.withQuotas(created), nil
}

// createUser stores an account. A nil actor is a stranger, or the program itself, which comes from no network.
func (c *Catalog) createUser(ctx context.Context, actor *Actor, user freshet.User, password, network string) (*freshet.User, error) {
	if err := freshet.Together(user.Validate(), freshet.ValidatePassword(password)); err != nil {
		return nil, err
	}
	if err := c.countSignUp(ctx, actor, network); err != nil {
		return nil, err
	}
	hash, err := c.passwords.hash(ctx, network, password)
	if err != nil {
		return nil, err
	}
	user.CreatedAt = c.now()
	user.UpdatedAt = user.CreatedAt
	err = c.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.CreateUser(&store.Account{User: user, PasswordHash: hash}); err != nil {
			return err
		}
		if actor == nil {
			return c.rememberNetwork(tx, user.ID, network)
		}
		return c.audit(tx, actor, act{name: "user.create"}, user.ID, user.ID)
	})
	if err != nil {
		return nil, emailTaken(err)
	}
	return &user, nil
}

// countSignUp limits the accounts that one network makes in an hour, over all nodes. Admins are not counted, nor is the program
// itself.
func (c *Catalog) countSignUp(ctx context.Context, actor *Actor, network string) error {
	limit := c.opts.SignUpsPerAddress
	if limit <= 0 || network == "" || actor != nil && actor.Admin() {
		return nil
	}
	left, within := httpkit.TakeWithin(ctx, c.opts.Counter, "signup address "+network, limit, time.Hour, c.opts.Now())
	if within {
		return nil
	}
	e := freshet.Errorf(freshet.TooManyRequests, "More than %d accounts from your address in this hour; try again later, or ask the server's admin for one", limit)
	e.RetryAfter = left.Reset
	return e
}

func emailTaken(err error) error {
	if errors.Is(err, store.ErrEmailTaken) {
		return taken(err, "email", "There is an account with this e-mail already")
	}
	return err
}

// withQuotas fills the quotas an account has none of its own for: what is shown is what applies.
func (c *Catalog) withQuotas(u *freshet.User) *freshet.User {
	u.Quotas = u.Quotas.Or(c.opts.Quotas)
	return u
}

// User returns an account: the actor's own, or any for an admin.
func (c *Catalog) User(ctx context.Context, actor *Actor, id string) (*freshet.User, error) {
	if err := c.checkUser(actor, id); err != nil {
		return nil, err
	}
	u, err := c.store.User(ctx, id)
	if err != nil {
		return nil, rename(err, "user")
	}
	return c.withQuotas(u), nil
}

func (c *Catalog) checkUser(actor *Actor, id string) error {
	if !freshet.IsID(id) || !actor.sees(id) {
		return notFound("user")
	}
	return nil
}

// UserChange is what the owner of an account, or an admin, wants to be different. Nil leaves a value alone.
type UserChange struct {
	Email, FirstName, LastName, Language, Password *string

	CurrentPassword *string // which owners give to change e-mail or password
	Network         string  // where the actor comes from, as for SignIn
}

// errCurrentPassword answers a wrong current password: the token is good, so it is no reason to sign in again.
var errCurrentPassword = &freshet.Error{Kind: freshet.Forbidden, Msg: "The current password is wrong",
	Fields: []freshet.FieldError{{Field: currentPassword, Message: "is wrong"}}}

const currentPassword = "current_password"

// UpdateUser changes an account. A new password ends every session of it, the actor's own included. Whoever changes the own
// password or e-mail proves to know the current password: a token alone, found in an open tab, must not be enough to take the
// account over.
func (c *Catalog) UpdateUser(ctx context.Context, actor *Actor, id string, change UserChange) (*freshet.User, error) {
	if err := c.checkUser(actor, id); err != nil {
		return nil, err
	}
	if !change.needsProof(actor, id) {
		return c.updateUser(ctx, actor, id, change, nil)
	}
	bad := freshet.Together(checkNew(change.Password), checkCurrent(change.CurrentPassword))
	if bad == nil {
		if err := c.proveCurrent(ctx, actor, change); err != nil {
			return nil, err
		}
	}
	return c.updateUser(ctx, actor, id, change, bad)
}

// needsProof reports whether the actor changes what its own account is entered with.
func (u *UserChange) needsProof(actor *Actor, id string) bool {
	return actor.User.ID == id && (u.Password != nil || u.Email != nil && *u.Email != actor.User.Email)
}

func checkCurrent(password *string) error {
	if password == nil || *password == "" {
		return freshet.InvalidField(currentPassword, "is required to change your own password or e-mail")
	}
	return nil
}

// proveCurrent counts a wrong password like a failed sign-in: a token must not be a way to guess it.
func (c *Catalog) proveCurrent(ctx context.Context, actor *Actor, change UserChange) error {
	_, err := c.prove(ctx, freshet.EmailKey(actor.User.Email), *change.CurrentPassword, change.Network)
	if _, isRefused := failureOf(err); isRefused {
		return errCurrentPassword
	}
	return err
}

// updateUser changes an account, unless something was found to be bad about the change already.
func (c *Catalog) updateUser(ctx context.Context, actor *Actor, id string, change UserChange, bad error) (*freshet.User, error) {
	bad = freshet.Together(bad, checkNew(change.Password))
	hash := ""
	if bad == nil && change.Password != nil {
		var err error // hashing takes tens of milliseconds, and writers wait in line: not in the transaction
		if hash, err = c.passwords.hash(ctx, change.Network, *change.Password); err != nil {
			return nil, err
		}
	}
	return c.changeUser(ctx, actor, id, act{name: "user.update"}, func(tx *store.Tx, a *store.Account) error {
		set(&a.Email, change.Email)
		set(&a.FirstName, change.FirstName)
		set(&a.LastName, change.LastName)
		set(&a.Language, change.Language)
		switch {
		case bad != nil:
			return freshet.Together(a.Validate(), bad) // one answer names everything
		case hash == "":
			return nil
		}
		a.PasswordHash = hash
		return tx.EndSessions(id, "")
	})
}

func checkNew(password *string) error {
	if password == nil {
		return nil
	}
	return freshet.ValidatePassword(*password)
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// changeUser is the one way an existing account changes: locked, changed, checked, saved, recorded, made known.
func (c *Catalog) changeUser(ctx context.Context, actor *Actor, id string, a act, change func(*store.Tx, *store.Account) error) (*freshet.User, error) {
	var changed freshet.User
	err := c.store.Update(ctx, func(tx *store.Tx) error {
		account, err := tx.LockUser(id)
		if err != nil {
			return rename(err, "user")
		}
		if err := change(tx, account); err != nil {
			return err
		}
		if err := account.Validate(); err != nil {
			return err
		}
		account.UpdatedAt = c.now()
		if err := tx.SaveUser(account); err != nil {
			return emailTaken(err)
		}
		changed = account.User
		return c.audit(tx, actor, a, account.ID, id)
	})
	if err != nil {
		return nil, err
	}
	c.notify(ctx, grid.ScopeUser, id)
	return c.withQuotas(&changed), nil
}

// DeleteUser removes an account and everything below it. Admins cannot remove themselves, so one always remains.
func (c *Catalog) DeleteUser(ctx context.Context, actor *Actor, id string) error {
	if err := c.checkUser(actor, id); err != nil {
		return err
	}
	if actor.Admin() && actor.User.ID == id {
		return freshet.Errorf(freshet.Conflict, "An admin cannot delete its own account; ask another admin")
	}
	var topics []string
	err := c.store.Update(ctx, func(tx *store.Tx) (err error) {
		if topics, err = tx.TopicsOfUser(id); err != nil {
			return err
		}
		if err := tx.DeleteUser(id); err != nil {
			return rename(err, "user")
		}
		return c.audit(tx, actor, act{name: "user.delete"}, id, id)
	})
	if err != nil {
		return err
	}
	c.notify(ctx, grid.ScopeUser, id)
	c.forgetDocuments(ctx, topics)
	return nil
}
