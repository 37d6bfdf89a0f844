package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// Account is a user with what only the catalog may see.
type Account struct {
	freshet.User
	PasswordHash string
}

const userColumns = `u.id, u.email, u.first_name, u.last_name, u.language, u.role, u.status,
	u.quota_connections, u.quota_messages_per_month, u.quota_requests_per_minute, u.quota_topics, u.quota_document_bytes, u.created_at, u.updated_at`

// userRow collects the columns of userColumns.
type userRow struct {
	user             freshet.User
	role, status     string
	created, updated int64
}

func (r *userRow) dest() []any {
	u := &r.user
	return []any{&u.ID, &u.Email, &u.FirstName, &u.LastName, &u.Language, &r.role, &r.status,
		&u.Quotas.Connections, &u.Quotas.MessagesPerMonth, &u.Quotas.RequestsPerMinute,
		&u.Quotas.Topics, &u.Quotas.DocumentBytes, &r.created, &r.updated}
}

func (r *userRow) value() freshet.User {
	r.user.Role, r.user.Status = freshet.Role(r.role), freshet.Status(r.status)
	r.user.CreatedAt, r.user.UpdatedAt = fromMillis(r.created), fromMillis(r.updated)
	return r.user
}

// User returns the user with the identifier.
func (s *Store) User(ctx context.Context, id string) (*freshet.User, error) {
	return s.oneUser(ctx, `SELECT `+userColumns+` FROM users u WHERE u.id = $1`, id)
}

// SessionUser returns the user of a session that has not expired.
func (s *Store) SessionUser(ctx context.Context, sessionID string, now time.Time) (*freshet.User, error) {
	return s.oneUser(ctx, `SELECT `+userColumns+` FROM sessions s JOIN users u ON u.id = s.user_id
		WHERE s.id = $1 AND s.expires_at > $2`, sessionID, millis(now))
}

func (s *Store) oneUser(ctx context.Context, query string, id string, more ...any) (*freshet.User, error) {
	if !isText(id) {
		return nil, notFound("user")
	}
	var r userRow
	err := s.reader(ctx).row(query, append([]any{id}, more...), r.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("user")
	}
	if err != nil {
		return nil, err
	}
	u := r.value()
	return &u, nil
}

// AccountByEmail returns the account whose e-mail has the key (see freshet.EmailKey).
func (s *Store) AccountByEmail(ctx context.Context, emailKey string) (*Account, error) {
	return s.reader(ctx).account(`u.email_key = $1`, emailKey)
}

func (c conn) account(condition, arg string) (*Account, error) {
	if !isText(arg) {
		return nil, notFound("user")
	}
	var r userRow
	var hash string
	err := c.row(`SELECT `+userColumns+`, u.password_hash FROM users u WHERE `+condition,
		[]any{arg}, append(r.dest(), &hash)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("user")
	}
	if err != nil {
		return nil, err
	}
	return &Account{User: r.value(), PasswordHash: hash}, nil
}

// The total joins an outer page, so that it is known on an empty page too.
const (
	allUsers = `SELECT c.total, ` + userColumns + `
		FROM (SELECT count(*) AS total FROM users) c
		LEFT JOIN (SELECT * FROM users ORDER BY id LIMIT $2 OFFSET $1) u ON TRUE
		ORDER BY u.id`
	matchingUsers = `SELECT c.total, ` + userColumns + `
		FROM (SELECT count(*) AS total FROM users WHERE search LIKE $3 ESCAPE '\') c
		LEFT JOIN (SELECT * FROM users WHERE search LIKE $3 ESCAPE '\' ORDER BY id LIMIT $2 OFFSET $1) u ON TRUE
		ORDER BY u.id`
)

// maxQuery is more than any e-mail and name together; SQLite refuses patterns of more than 50,000 bytes.
const maxQuery = 4096

// Users lists the users whose e-mail or name contains query in any case, oldest first. An empty query lists all.
func (s *Store) Users(ctx context.Context, query string, page Page) (Listing[freshet.User], error) {
	if !isText(query) || len(query) > maxQuery {
		return Listing[freshet.User]{}, nil
	}
	offset, limit := page.args()
	text, args := allUsers, []any{offset, limit}
	if query != "" {
		text, args = matchingUsers, append(args, containing(query))
	}
	var list Listing[freshet.User]
	err := s.reader(ctx).rows(text, args, func(scan scanner) error {
		var r userRow
		err := scan(append([]any{&list.Total}, r.dest()...)...)
		if err == nil && r.user.ID != "" {
			list.Items = append(list.Items, r.value())
		}
		return err
	})
	return list, err
}

// containing is the LIKE pattern for texts with query in them.
func containing(query string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(query)) + "%"
}

// searchText is what Users looks through. The line break keeps a query from matching across e-mail and name.
func searchText(u *freshet.User) string {
	return strings.ToLower(u.Email + "\n" + u.FirstName + " " + u.LastName)
}

// CreateUser adds the account. A taken e-mail is ErrEmailTaken.
func (tx *Tx) CreateUser(a *Account) error {
	return tx.write("user", `INSERT INTO users (id, email, email_key, search, first_name, last_name, language, role, status,
			quota_connections, quota_messages_per_month, quota_requests_per_minute, quota_topics, quota_document_bytes,
			password_hash, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`, a.args()...)
}

// SaveUser replaces everything but the identifier and the time of creation.
func (tx *Tx) SaveUser(a *Account) error {
	tx.changed(SubjectUser, a.ID)
	args := a.args()
	last := len(args) - 1
	args[last-1] = args[last] // created_at stays
	return tx.write("user", `UPDATE users SET email = $2, email_key = $3, search = $4, first_name = $5, last_name = $6,
			language = $7, role = $8, status = $9, quota_connections = $10, quota_messages_per_month = $11,
			quota_requests_per_minute = $12, quota_topics = $13, quota_document_bytes = $14, password_hash = $15, updated_at = $16
		WHERE id = $1`, args[:last]...)
}

func (a *Account) args() []any {
	return []any{a.ID, a.Email, freshet.EmailKey(a.Email), searchText(&a.User), a.FirstName, a.LastName, a.Language,
		string(a.Role), string(a.Status), a.Quotas.Connections, a.Quotas.MessagesPerMonth, a.Quotas.RequestsPerMinute,
		a.Quotas.Topics, a.Quotas.DocumentBytes, a.PasswordHash, millis(a.CreatedAt), millis(a.UpdatedAt)}
}

// LockUser returns the account and keeps others from changing it until the transaction ends.
func (tx *Tx) LockUser(id string) (*Account, error) {
	if err := tx.lock("user", `UPDATE users SET updated_at = updated_at WHERE id = $1`, id); err != nil {
		return nil, err
	}
	return readLocked(tx, func() (*Account, error) { return tx.account(`u.id = $1`, id) })
}

// DeleteUser takes the user's sessions, apps, topics and keys along.
func (tx *Tx) DeleteUser(id string) error {
	tx.changed(SubjectUser, id)
	return tx.write("user", `DELETE FROM users WHERE id = $1`, id)
}
