package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// ensureAdmin creates the admin at the first start. At later ones it lets settings replace what is still at its
// fixed default, so that an operator who sets a password or an e-mail after the first try gets what he asked for.
func (c *Catalog) ensureAdmin(ctx context.Context) error {
	admins, err := c.store.Admins(ctx)
	if err != nil {
		return fmt.Errorf("look for the admin: %w", err)
	}
	if len(admins) == 0 {
		return c.createAdmin(ctx)
	}
	for i := range admins {
		if err := c.reviewAdmin(ctx, &admins[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Catalog) createAdmin(ctx context.Context) error {
	if err := c.refuseFixedPassword(c.opts.AdminPassword.Reveal()); err != nil {
		return err
	}
	admin := freshet.User{
		ID:        freshet.NewID(),
		Email:     c.opts.AdminEmail,
		FirstName: "Freshet",
		LastName:  "Admin",
		Language:  "en_US",
		Role:      freshet.RoleAdmin,
		Status:    freshet.StatusActive,
		Quotas:    freshet.DefaultQuotas,
	}
	_, err := c.createUser(ctx, nil, admin, c.opts.AdminPassword.Reveal(), "")
	if freshet.KindOf(err) == freshet.Conflict {
		return c.otherAdmin(ctx)
	}
	if err != nil {
		return fmt.Errorf("create the admin (admin.email, admin.password): %w", err)
	}
	c.log.Info("admin created", "email", admin.Email)
	return nil
}

// otherAdmin explains why the admin's e-mail is taken: another node that starts at the same time was faster, which
// is fine, or the e-mail is somebody else's.
func (c *Catalog) otherAdmin(ctx context.Context) error {
	admins, err := c.store.Admins(ctx)
	if err != nil {
		return fmt.Errorf("look for the admin: %w", err)
	}
	if len(admins) > 0 {
		return nil
	}
	return freshet.Errorf(freshet.Invalid, "The admin e-mail belongs to an account that is no admin; set admin.email to another one")
}

// reviewAdmin moves one admin off the fixed defaults if the settings say so, and insists on it in production.
func (c *Catalog) reviewAdmin(ctx context.Context, admin *store.Account) error {
	fixedPassword, err := c.passwords.matches(ctx, "", freshet.FixedAdminPassword, admin.PasswordHash)
	if err != nil {
		return err
	}
	var change UserChange
	if wanted := c.opts.AdminPassword.Reveal(); fixedPassword && wanted != freshet.FixedAdminPassword {
		change.Password = &wanted
		fixedPassword = false
	}
	if fixedPassword {
		if err := c.refuseFixedPassword(freshet.FixedAdminPassword); err != nil {
			return err
		}
	}
	if freshet.EmailKey(admin.Email) == freshet.FixedAdminEmail && freshet.EmailKey(c.opts.AdminEmail) != freshet.FixedAdminEmail {
		change.Email = &c.opts.AdminEmail
	}
	if change == (UserChange{}) {
		return nil
	}
	if _, err := c.updateUser(ctx, &Actor{User: admin.User}, admin.ID, change, nil); err != nil {
		return fmt.Errorf("set admin.email and admin.password: %w", err)
	}
	c.log.Info("admin took over the settings", "email", c.opts.AdminEmail)
	return nil
}

func (c *Catalog) refuseFixedPassword(password string) error {
	if password != freshet.FixedAdminPassword {
		return nil
	}
	if c.opts.Production {
		return freshet.Errorf(freshet.Invalid, "The admin still has the fixed password, which production does not allow; set another with --admin-password or FRESHET_ADMIN_PASSWORD")
	}
	c.log.Warn("the admin has the fixed password; set another with --admin-password or FRESHET_ADMIN_PASSWORD")
	return nil
}

// errAdminOnly hides the admin API from everybody else.
var errAdminOnly = freshet.Errorf(freshet.NotFound, "There is nothing at this path")

// Users lists accounts whose e-mail or name contains the query, for admins.
func (c *Catalog) Users(ctx context.Context, actor *Actor, query string, page Page) (Listing[freshet.User], error) {
	if !actor.Admin() {
		return Listing[freshet.User]{}, errAdminOnly
	}
	list, err := c.store.Users(ctx, query, page)
	for i := range list.Items {
		c.withQuotas(&list.Items[i])
	}
	return list, err
}

// QuotasChange is what an admin wants to be different about quotas. Nil leaves a value alone.
type QuotasChange struct {
	Connections       *int64 `json:"connections,omitempty"`
	MessagesPerMonth  *int64 `json:"messages_per_month,omitempty"`
	RequestsPerMinute *int64 `json:"requests_per_minute,omitempty"`
	Topics            *int64 `json:"topics,omitempty"`
	DocumentBytes     *int64 `json:"document_bytes,omitempty"`
}

func (q *QuotasChange) apply(to *freshet.Quotas) {
	set(&to.Connections, q.Connections)
	set(&to.MessagesPerMonth, q.MessagesPerMonth)
	set(&to.RequestsPerMinute, q.RequestsPerMinute)
	set(&to.Topics, q.Topics)
	set(&to.DocumentBytes, q.DocumentBytes)
}

// AccountChange is what an admin wants to be different about an account. Nil leaves a value alone.
type AccountChange struct {
	Status *freshet.Status `json:"status,omitempty"`
	Quotas QuotasChange    `json:"quotas,omitzero"`
}

// UpdateAccount changes the state and the quotas of an account, for admins. Disabling it ends its sessions.
func (c *Catalog) UpdateAccount(ctx context.Context, actor *Actor, id string, change AccountChange) (*freshet.User, error) {
	if !actor.Admin() {
		return nil, errAdminOnly
	}
	if err := checkID("user", id); err != nil {
		return nil, err
	}
	disable := change.Status != nil && *change.Status == freshet.StatusDisabled
	if disable && actor.User.ID == id {
		return nil, freshet.Errorf(freshet.Conflict, "An admin cannot disable its own account; ask another admin")
	}
	return c.changeUser(ctx, actor, id, administering("user.administer", change), func(tx *store.Tx, a *store.Account) error {
		set(&a.Status, change.Status)
		change.Quotas.apply(&a.Quotas)
		if disable {
			return tx.EndSessions(id, "")
		}
		return nil
	})
}

// UpdateAppQuotas changes the quotas of an app, for admins.
func (c *Catalog) UpdateAppQuotas(ctx context.Context, actor *Actor, id string, change QuotasChange) (*freshet.App, error) {
	if !actor.Admin() {
		return nil, errAdminOnly
	}
	detail := AccountChange{Quotas: change}
	return c.changeApp(ctx, actor, id, administering("app.administer", detail), func(tx *store.Tx, app *freshet.App) error {
		change.apply(&app.Quotas)
		if err := app.Validate(); err != nil {
			return err
		}
		app.UpdatedAt = c.now()
		return tx.SaveApp(app)
	})
}

// act is something that may have to be put on record.
type act struct {
	name   string
	detail string // JSON: what was changed to what; empty where that would say too much about somebody, or nothing
	office bool   // only admins can do it, so it is on record also where it concerns themselves
}

func administering(name string, change any) act {
	detail, err := json.Marshal(change)
	if err != nil {
		panic(err) // of numbers and texts
	}
	return act{name: name, detail: string(detail), office: true}
}

// AuditEntry is one administrative act.
type AuditEntry = store.AuditEntry

// Audit lists administrative acts, newest first, for admins.
func (c *Catalog) Audit(ctx context.Context, actor *Actor, page Page) (Listing[AuditEntry], error) {
	if !actor.Admin() {
		return Listing[AuditEntry]{}, errAdminOnly
	}
	return c.store.Audit(ctx, page)
}

// Administer does something to what belongs to no account, for admins, and keeps it on record. do says what it was done to.
func (c *Catalog) Administer(ctx context.Context, actor *Actor, action string, do func() (subject string, err error)) error {
	if !actor.Admin() {
		return errAdminOnly
	}
	subject, err := do()
	if err != nil {
		return err
	}
	return c.store.Update(ctx, func(tx *store.Tx) error { return c.audit(tx, actor, act{name: action, office: true}, subject, "") })
}

// audit records what an admin did to somebody else's things, in the transaction that does it.
func (c *Catalog) audit(tx *store.Tx, actor *Actor, a act, subject, ownerID string) error {
	if !actor.Admin() || actor.User.ID == ownerID && !a.office {
		return nil
	}
	return tx.AppendAudit(AuditEntry{
		ID: freshet.NewID(), At: c.now(), ActorID: actor.User.ID, Action: a.name, Subject: subject, Detail: a.detail,
	})
}
