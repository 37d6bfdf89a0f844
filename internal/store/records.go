package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
)

// Records are what decides who may publish and who may follow, in the parts that change together: a key, an app with its account,
// a topic. Each knows the revision of the catalog that it was read at, so that whoever remembers it can tell which of the changes in
// the log it has seen.

// KeyRecord is a key, current or revoked, and whose it is.
type KeyRecord struct {
	freshet.KeyRecord
	UserID   string
	Revision int64
}

// AppRecord is an app with its current keys, and the state of the account that answers for it.
type AppRecord struct {
	App        freshet.App
	UserStatus freshet.Status
	Quotas     freshet.Quotas // of the account, as stored
	Revision   int64
}

// TopicRecord is a topic.
type TopicRecord struct {
	Topic freshet.Topic

	// AppCreatedAt tells the app that the topic is in from another one that got its identifier later.
	AppCreatedAt time.Time
	Revision     int64
}

const atRevision = `(SELECT revision FROM catalog_revision)`

// KeyRecord returns a key.
func (s *Store) KeyRecord(ctx context.Context, kind freshet.KeyKind, key freshet.Key) (*KeyRecord, error) {
	if !isText(key.Reveal()) {
		return nil, notFound("key")
	}
	var created, revoked int64
	found := KeyRecord{KeyRecord: freshet.KeyRecord{Kind: kind, Key: key}}
	err := s.reader(ctx).row(`SELECT k.app_id, k.created_at, k.revoked_at, a.user_id, `+atRevision+`
		FROM keys k JOIN apps a ON a.id = k.app_id WHERE k.kind = $1 AND k.value = $2`, []any{string(kind), key.Reveal()},
		&found.AppID, &created, &revoked, &found.UserID, &found.Revision)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("key")
	}
	found.CreatedAt, found.RevokedAt = fromMillis(created), fromMillis(revoked)
	return &found, err
}

// AppRecord returns an app.
func (s *Store) AppRecord(ctx context.Context, id string) (*AppRecord, error) {
	if !isText(id) {
		return nil, notFound("app")
	}
	var a appRow
	var status string
	var found AppRecord
	q := &found.Quotas
	err := s.reader(ctx).row(`SELECT u.status, u.quota_connections, u.quota_messages_per_month, u.quota_requests_per_minute,
			u.quota_topics, u.quota_document_bytes, `+atRevision+`, `+appColumns+`, `+keyColumns+`
		FROM apps a JOIN users u ON u.id = a.user_id`+keyJoins+` WHERE a.id = $1`, []any{id},
		append([]any{&status, &q.Connections, &q.MessagesPerMonth, &q.RequestsPerMinute, &q.Topics, &q.DocumentBytes, &found.Revision},
			a.destWithKeys()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("app")
	}
	if err != nil {
		return nil, err
	}
	found.UserStatus = freshet.Status(status)
	found.App, err = a.value()
	return &found, err
}

// TopicRecord returns a topic.
func (s *Store) TopicRecord(ctx context.Context, id string) (*TopicRecord, error) {
	if !isText(id) {
		return nil, notFound("topic")
	}
	var t topicRow
	var created int64
	var found TopicRecord
	err := s.reader(ctx).row(`SELECT a.created_at, `+atRevision+`, `+topicColumns+`
		FROM topics t JOIN apps a ON a.id = t.app_id WHERE t.id = $1`, []any{id},
		append([]any{&created, &found.Revision}, t.dest()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("topic")
	}
	if err != nil {
		return nil, err
	}
	found.AppCreatedAt = fromMillis(created)
	found.Topic, err = t.value()
	return &found, err
}
