package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/freshet-io/freshet"
)

const appColumns = `a.id, a.user_id, a.name, a.auto_provisioning_allowed, a.signature_required, a.defaults,
	a.quota_connections, a.quota_messages_per_month, a.quota_requests_per_minute, a.quota_topics, a.quota_document_bytes, a.created_at, a.updated_at`

// The current keys of app a, for appKeys. The condition must be spelled like that of the partial index keys_current.
const (
	keyColumns = `ks.value, kp.value, kg.value`
	keyJoins   = `
		LEFT JOIN keys ks ON ks.app_id = a.id AND ks.kind = 'subscriber' AND ks.revoked_at = 0
		LEFT JOIN keys kp ON kp.app_id = a.id AND kp.kind = 'publisher' AND kp.revoked_at = 0
		LEFT JOIN keys kg ON kg.app_id = a.id AND kg.kind = 'signature' AND kg.revoked_at = 0`
)

// appRow collects the columns of appColumns and, where asked for, keyColumns.
type appRow struct {
	app                              freshet.App
	defaults                         string
	created, updated                 int64
	subscriber, publisher, signature string
}

func (r *appRow) dest() []any {
	a := &r.app
	return []any{&a.ID, &a.UserID, &a.Name, &a.AutoProvisioningAllowed, &a.SignatureRequired, &r.defaults,
		&a.Quotas.Connections, &a.Quotas.MessagesPerMonth, &a.Quotas.RequestsPerMinute,
		&a.Quotas.Topics, &a.Quotas.DocumentBytes, &r.created, &r.updated}
}

func (r *appRow) destWithKeys() []any {
	return append(r.dest(), &r.subscriber, &r.publisher, &r.signature)
}

func (r *appRow) value() (freshet.App, error) {
	var d appDefaults
	if err := json.Unmarshal([]byte(r.defaults), &d); err != nil {
		return freshet.App{}, fmt.Errorf("defaults of app %s: %w", r.app.ID, err)
	}
	r.app.Defaults = freshet.Defaults{PollEvery: d.PollEvery.duration(), ForcePublishing: d.ForcePublishing}
	r.app.AllowedTargetHosts = d.TargetHosts
	r.app.CreatedAt, r.app.UpdatedAt = fromMillis(r.created), fromMillis(r.updated)
	r.app.SubscriberKey = freshet.Key(r.subscriber)
	r.app.PublisherKey = freshet.Key(r.publisher)
	r.app.SignatureKey = freshet.Key(r.signature)
	return r.app, nil
}

// appDefaults is the JSON of apps.defaults. New settings are new members.
type appDefaults struct {
	PollEvery       *millisJSON `json:"poll_every_ms,omitempty"`
	ForcePublishing *bool       `json:"force_publishing,omitempty"`
	TargetHosts     []string    `json:"allowed_target_hosts,omitempty"`
}

// millisJSON is a duration in milliseconds.
type millisJSON int64

func toMillisJSON(d *time.Duration) *millisJSON {
	if d == nil {
		return nil
	}
	ms := millisJSON(d.Milliseconds())
	return &ms
}

func (ms *millisJSON) duration() *time.Duration {
	if ms == nil {
		return nil
	}
	d := time.Duration(*ms) * time.Millisecond
	return &d
}

// App returns the app with its three current keys.
func (s *Store) App(ctx context.Context, id string) (*freshet.App, error) {
	return s.reader(ctx).appWithKeys(id)
}

func (c conn) appWithKeys(id string) (*freshet.App, error) {
	if !isText(id) {
		return nil, notFound("app")
	}
	var r appRow
	err := c.row(`SELECT `+appColumns+`, `+keyColumns+` FROM apps a`+keyJoins+` WHERE a.id = $1`,
		[]any{id}, r.destWithKeys()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("app")
	}
	if err != nil {
		return nil, err
	}
	a, err := r.value()
	return &a, err
}

// Apps lists the user's apps with their current keys, oldest first. A user that does not exist has none.
func (s *Store) Apps(ctx context.Context, userID string, page Page) (Listing[freshet.App], error) {
	if !isText(userID) {
		return Listing[freshet.App]{}, nil
	}
	var list Listing[freshet.App]
	offset, limit := page.args()
	err := s.reader(ctx).rows(`SELECT c.total, `+appColumns+`, `+keyColumns+`
		FROM (SELECT count(*) AS total FROM apps WHERE user_id = $1) c
		LEFT JOIN (SELECT * FROM apps WHERE user_id = $1 ORDER BY id LIMIT $3 OFFSET $2) a ON TRUE`+keyJoins+`
		ORDER BY a.id`, []any{userID, offset, limit}, func(scan scanner) error {
		var r appRow
		if err := scan(append([]any{&list.Total}, r.destWithKeys()...)...); err != nil || r.app.ID == "" {
			return err
		}
		a, err := r.value()
		list.Items = append(list.Items, a)
		return err
	})
	return list, err
}

// CreateApp adds the app and those of its keys that are set. ErrAppNameTaken and ErrKeyTaken say what it clashed with.
func (tx *Tx) CreateApp(a *freshet.App) error {
	defaults, err := defaultsText(a)
	if err != nil {
		return err
	}
	err = tx.write("user", `INSERT INTO apps (id, user_id, name, auto_provisioning_allowed, signature_required, defaults,
			topic_count, quota_connections, quota_messages_per_month, quota_requests_per_minute, quota_topics,
			quota_document_bytes, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, $10, $11, $12, $13)`,
		a.ID, a.UserID, a.Name, a.AutoProvisioningAllowed, a.SignatureRequired, defaults, a.Quotas.Connections,
		a.Quotas.MessagesPerMonth, a.Quotas.RequestsPerMinute, a.Quotas.Topics, a.Quotas.DocumentBytes, millis(a.CreatedAt), millis(a.UpdatedAt))
	if err != nil {
		return err
	}
	for _, k := range []struct {
		kind freshet.KeyKind
		key  freshet.Key
	}{
		{freshet.SubscriberKey, a.SubscriberKey},
		{freshet.PublisherKey, a.PublisherKey},
		{freshet.SignatureKey, a.SignatureKey},
	} {
		if k.key == "" {
			continue
		}
		if err := tx.createKey(a.ID, k.kind, k.key, a.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

// LockApp returns the app with its current keys and keeps others from changing it, its keys and its topics until
// the transaction ends.
func (tx *Tx) LockApp(id string) (*freshet.App, error) {
	if err := tx.lock("app", `UPDATE apps SET topic_count = topic_count WHERE id = $1`, id); err != nil {
		return nil, err
	}
	return readLocked(tx, func() (*freshet.App, error) { return tx.appWithKeys(id) })
}

// SaveApp replaces name, flags, defaults, quotas and the time of the last change. Keys change through ReplaceKey only.
func (tx *Tx) SaveApp(a *freshet.App) error {
	defaults, err := defaultsText(a)
	if err != nil {
		return err
	}
	tx.changed(SubjectApp, a.ID)
	return tx.write("app", `UPDATE apps SET name = $2, auto_provisioning_allowed = $3, signature_required = $4,
			defaults = $5, quota_connections = $6, quota_messages_per_month = $7, quota_requests_per_minute = $8,
			quota_topics = $9, quota_document_bytes = $10, updated_at = $11
		WHERE id = $1`,
		a.ID, a.Name, a.AutoProvisioningAllowed, a.SignatureRequired, defaults, a.Quotas.Connections, a.Quotas.MessagesPerMonth,
		a.Quotas.RequestsPerMinute, a.Quotas.Topics, a.Quotas.DocumentBytes, millis(a.UpdatedAt))
}

// DeleteApp takes the app's topics and keys along, revoked ones too: nobody is told that a key of a deleted app was
// ever good, and the key is free for another app.
func (tx *Tx) DeleteApp(id string) error {
	tx.changed(SubjectApp, id)
	return tx.write("app", `DELETE FROM apps WHERE id = $1`, id)
}

func defaultsText(a *freshet.App) (string, error) {
	text, err := json.Marshal(appDefaults{
		PollEvery:       toMillisJSON(a.Defaults.PollEvery),
		ForcePublishing: a.Defaults.ForcePublishing,
		TargetHosts:     a.AllowedTargetHosts,
	})
	return string(text), err
}
