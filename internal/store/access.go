package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/freshet-io/freshet"
)

// TopicAccess is what decides who may publish to a topic or follow it: the topic, its app with the current keys, and
// the state of the account that answers for both.
type TopicAccess struct {
	TopicInApp
	UserStatus freshet.Status
	Quotas     freshet.Quotas // of the account, as stored
}

// TopicAccess returns the topic with its app's keys and its account's state.
func (s *Store) TopicAccess(ctx context.Context, id string) (*TopicAccess, error) {
	if !isText(id) {
		return nil, notFound("topic")
	}
	var (
		t      topicRow
		a      appRow
		status string
		access TopicAccess
	)
	err := s.reader(ctx).row(`SELECT u.status, u.quota_connections, u.quota_messages_per_month, u.quota_requests_per_minute, u.quota_topics, u.quota_document_bytes, `+topicColumns+`, `+appColumns+`, `+keyColumns+`
		FROM topics t JOIN apps a ON a.id = t.app_id JOIN users u ON u.id = a.user_id`+keyJoins+`
		WHERE t.id = $1`, []any{id}, append(append([]any{&status, &access.Quotas.Connections, &access.Quotas.MessagesPerMonth,
		&access.Quotas.RequestsPerMinute, &access.Quotas.Topics, &access.Quotas.DocumentBytes}, t.dest()...), a.destWithKeys()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("topic")
	}
	if err != nil {
		return nil, err
	}
	access.UserStatus = freshet.Status(status)
	if access.Topic, err = t.value(); err != nil {
		return nil, err
	}
	access.App, err = a.value()
	return &access, err
}

// Admins returns every account that may use the admin API, oldest first.
func (s *Store) Admins(ctx context.Context) ([]Account, error) {
	var admins []Account
	err := s.reader(ctx).rows(`SELECT `+userColumns+`, u.password_hash FROM users u WHERE u.role = $1 ORDER BY u.id`,
		[]any{string(freshet.RoleAdmin)}, func(scan scanner) error {
			var r userRow
			var hash string
			if err := scan(append(r.dest(), &hash)...); err != nil {
				return err
			}
			admins = append(admins, Account{User: r.value(), PasswordHash: hash})
			return nil
		})
	return admins, err
}
