package store

import (
	"context"

	"github.com/freshet-io/freshet"
)

type consumerRow struct {
	consumer freshet.Consumer
	created  int64
}

var consumers = registration[consumerRow]{
	noun: "consumer", table: "gateway_consumers",
	columns: `id, username, custom_id, created_at`,
	dest: func(r *consumerRow) []any {
		return []any{&r.consumer.ID, &r.consumer.Username, &r.consumer.CustomID, &r.created}
	},
	done: func(r *consumerRow) { r.consumer.CreatedAt = fromMillis(r.created) },
}

// ConsumerFilter selects consumers; empty fields select all.
type ConsumerFilter struct{ ID, Username, CustomID string }

func (f *ConsumerFilter) where() (w where) {
	w.equal("id", f.ID)
	w.equal("username", f.Username)
	w.equal("custom_id", f.CustomID)
	return w
}

// Consumers lists consumers, oldest first.
func (s *Store) Consumers(ctx context.Context, f ConsumerFilter, page Cursor) (Listing[freshet.Consumer], error) {
	rows, err := consumers.list(s.reader(ctx), f.where(), page, func(r *consumerRow) string { return r.consumer.ID })
	return Listing[freshet.Consumer]{Items: consumersOf(rows.Items), Total: rows.Total}, err
}

// ConsumersSince returns the consumers that changed after the revision.
func (s *Store) ConsumersSince(ctx context.Context, revision int64) ([]freshet.Consumer, error) {
	rows, err := consumers.since(s.reader(ctx), revision)
	return consumersOf(rows), err
}

func consumersOf(rows []consumerRow) []freshet.Consumer {
	all := make([]freshet.Consumer, len(rows))
	for i := range rows {
		all[i] = rows[i].consumer
	}
	return all
}

// Consumer returns the consumer with the identifier or, if ref is none, with the user name.
func (s *Store) Consumer(ctx context.Context, ref string) (*freshet.Consumer, error) {
	return s.reader(ctx).consumer(ref)
}

// Consumer is Store.Consumer inside the transaction.
func (tx *Tx) Consumer(ref string) (*freshet.Consumer, error) { return tx.consumer(ref) }

func (c conn) consumer(ref string) (*freshet.Consumer, error) {
	var w where
	if freshet.IsID(ref) {
		w.equal("id", ref)
	} else {
		w.equal("username", ref)
	}
	row, err := consumers.one(c, w)
	if err != nil {
		return nil, err
	}
	return &row.consumer, nil
}

// ConsumerWith returns the consumer other than exceptID that has the value in the column, username or custom_id.
func (tx *Tx) ConsumerWith(column, value, exceptID string) (*freshet.Consumer, error) {
	if value == "" {
		return nil, notFound("consumer")
	}
	var w where
	w.equal(column, value)
	w.and("id <> ", exceptID)
	row, err := consumers.one(tx.conn, w)
	if err != nil {
		return nil, err
	}
	return &row.consumer, nil
}

// CreateConsumer adds the consumer.
func (tx *Tx) CreateConsumer(c *freshet.Consumer, revision int64) error {
	return tx.write("consumer", `INSERT INTO gateway_consumers (id, revision, username, custom_id, created_at)
			VALUES ($1, $2, $3, $4, $5)`, c.ID, revision, c.Username, c.CustomID, millis(c.CreatedAt))
}

// SaveConsumer replaces the names.
func (tx *Tx) SaveConsumer(c *freshet.Consumer, revision int64) error {
	return tx.write("consumer", `UPDATE gateway_consumers SET revision = $2, username = $3, custom_id = $4 WHERE id = $1`,
		c.ID, revision, c.Username, c.CustomID)
}

// DeleteConsumer takes the consumer's credentials and plugins along.
func (tx *Tx) DeleteConsumer(id string) error {
	if _, err := tx.writeAny(`DELETE FROM gateway_plugins WHERE consumer_id = $1`, id); err != nil {
		return err
	}
	return tx.write("consumer", `DELETE FROM gateway_consumers WHERE id = $1`, id)
}

type credentialRow struct {
	credential freshet.Credential
	key        string
	created    int64
}

var credentials = registration[credentialRow]{
	noun: "credential", table: "gateway_credentials",
	columns: `id, consumer_id, value, created_at`,
	dest: func(r *credentialRow) []any {
		return []any{&r.credential.ID, &r.credential.ConsumerID, &r.key, &r.created}
	},
	done: func(r *credentialRow) {
		r.credential.Key, r.credential.CreatedAt = freshet.Key(r.key), fromMillis(r.created)
	},
}

// CredentialFilter selects credentials; empty fields select all.
type CredentialFilter struct {
	ID, ConsumerID string
	Key            freshet.Key
}

func (f *CredentialFilter) where() (w where) {
	w.equal("id", f.ID)
	w.equal("consumer_id", f.ConsumerID)
	w.equal("value", f.Key.Reveal())
	return w
}

// Credentials lists credentials, oldest first.
func (s *Store) Credentials(ctx context.Context, f CredentialFilter, page Cursor) (Listing[freshet.Credential], error) {
	rows, err := credentials.list(s.reader(ctx), f.where(), page, func(r *credentialRow) string { return r.credential.ID })
	return Listing[freshet.Credential]{Items: credentialsOf(rows.Items), Total: rows.Total}, err
}

// CredentialsSince returns the credentials that changed after the revision.
func (s *Store) CredentialsSince(ctx context.Context, revision int64) ([]freshet.Credential, error) {
	rows, err := credentials.since(s.reader(ctx), revision)
	return credentialsOf(rows), err
}

func credentialsOf(rows []credentialRow) []freshet.Credential {
	all := make([]freshet.Credential, len(rows))
	for i := range rows {
		all[i] = rows[i].credential
	}
	return all
}

// Credential returns the one credential that matches.
func (s *Store) Credential(ctx context.Context, f CredentialFilter) (*freshet.Credential, error) {
	return s.reader(ctx).credential(f.where())
}

// Credential is Store.Credential inside the transaction.
func (tx *Tx) Credential(f CredentialFilter) (*freshet.Credential, error) {
	return tx.credential(f.where())
}

func (c conn) credential(w where) (*freshet.Credential, error) {
	row, err := credentials.one(c, w)
	if err != nil {
		return nil, err
	}
	return &row.credential, nil
}

// CreateCredential adds the credential.
func (tx *Tx) CreateCredential(c *freshet.Credential, revision int64) error {
	return tx.write("consumer", `INSERT INTO gateway_credentials (id, revision, consumer_id, value, created_at)
			VALUES ($1, $2, $3, $4, $5)`, c.ID, revision, c.ConsumerID, c.Key.Reveal(), millis(c.CreatedAt))
}

// SaveCredential replaces the key.
func (tx *Tx) SaveCredential(c *freshet.Credential, revision int64) error {
	return tx.write("credential", `UPDATE gateway_credentials SET revision = $2, value = $3 WHERE id = $1`,
		c.ID, revision, c.Key.Reveal())
}

// DeleteCredential takes the credential away.
func (tx *Tx) DeleteCredential(id string) error {
	return tx.write("credential", `DELETE FROM gateway_credentials WHERE id = $1`, id)
}
