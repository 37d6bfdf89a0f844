package store

import (
	"context"
	"database/sql"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"time"

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

// TopicStamp tells one state of what decides over a topic from another. The zero stamp is that of a topic that is gone.
type TopicStamp struct {
	TopicUpdated, AppUpdated time.Time
	UserStatus               freshet.Status
	Quotas                   freshet.Quotas
}

// TopicStamps returns the stamps of topics, without those that do not exist.
func (s *Store) TopicStamps(ctx context.Context, ids []string) (map[string]TopicStamp, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	// As many places as the next power of two, so that there are few statements to prepare. The last one is named again.
	places := make([]string, 1<<bits.Len(uint(len(ids)-1)))
	args := make([]any, len(places))
	for i := range places {
		places[i], args[i] = "$"+strconv.Itoa(i+1), ids[min(i, len(ids)-1)]
	}
	all := make(map[string]TopicStamp, len(ids))
	err := s.reader(ctx).rows(`SELECT t.id, t.updated_at, a.updated_at, u.status, u.quota_connections, u.quota_messages_per_month, u.quota_requests_per_minute, u.quota_topics, u.quota_document_bytes
		FROM topics t JOIN apps a ON a.id = t.app_id JOIN users u ON u.id = a.user_id
		WHERE t.id IN (`+strings.Join(places, ", ")+`)`, args, func(scan scanner) error {
		var (
			id, status string
			topic, app int64
			stamp      TopicStamp
		)
		if err := scan(&id, &topic, &app, &status, &stamp.Quotas.Connections, &stamp.Quotas.MessagesPerMonth, &stamp.Quotas.RequestsPerMinute,
			&stamp.Quotas.Topics, &stamp.Quotas.DocumentBytes); err != nil {
			return err
		}
		stamp.TopicUpdated, stamp.AppUpdated, stamp.UserStatus = fromMillis(topic), fromMillis(app), freshet.Status(status)
		all[id] = stamp
		return nil
	})
	return all, err
}
