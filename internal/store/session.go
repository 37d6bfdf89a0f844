package store

import (
	"context"
	"time"
)

// Session is one signed-in client of a user. Its token is not kept, only the identifier the token carries.
type Session struct {
	ID        string
	UserID    string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// CreateSession adds a session.
func (tx *Tx) CreateSession(s Session) error {
	return tx.write("user", `INSERT INTO sessions (id, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)`,
		s.ID, s.UserID, millis(s.CreatedAt), millis(s.ExpiresAt))
}

// EndSession ends one session. One that does not exist has ended already.
func (tx *Tx) EndSession(id string) error {
	_, err := tx.writeAny(`DELETE FROM sessions WHERE id = $1`, id)
	return err
}

// EndSessions ends the user's sessions but one; an empty exceptID spares none.
func (tx *Tx) EndSessions(userID, exceptID string) error {
	_, err := tx.writeAny(`DELETE FROM sessions WHERE user_id = $1 AND id <> $2`, userID, exceptID)
	return err
}

// DropExpiredSessions forgets the user's sessions that nobody can use any more.
func (tx *Tx) DropExpiredSessions(userID string, now time.Time) error {
	_, err := tx.writeAny(`DELETE FROM sessions WHERE user_id = $1 AND expires_at <= $2`, userID, millis(now))
	return err
}

// maxNetworks is how many networks are remembered of one account.
const maxNetworks = 50

// RememberNetwork notes that somebody signed in to the account from the network, and forgets those that were last seen before
// the time, and the oldest where there are too many.
func (tx *Tx) RememberNetwork(userID, network string, now, forget time.Time) error {
	err := tx.write("user", `INSERT INTO known_networks (user_id, network, seen_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_id, network) DO UPDATE SET seen_at = excluded.seen_at`, userID, network, millis(now))
	if err != nil {
		return err
	}
	_, err = tx.writeAny(`DELETE FROM known_networks WHERE user_id = $1 AND (seen_at < $2 OR network NOT IN (
		SELECT network FROM known_networks WHERE user_id = $1 ORDER BY seen_at DESC, network LIMIT $3))`, userID, millis(forget), maxNetworks)
	return err
}

// KnowsNetwork reports whether somebody signed in to the account with this e-mail (see freshet.EmailKey) from the network since
// then.
func (s *Store) KnowsNetwork(ctx context.Context, emailKey, network string, since time.Time) (bool, error) {
	if !isText(emailKey) {
		return false, nil
	}
	var n int64
	err := s.reader(ctx).row(`SELECT count(*) FROM users u JOIN known_networks k ON k.user_id = u.id
		WHERE u.email_key = $1 AND k.network = $2 AND k.seen_at >= $3`, []any{emailKey, network, millis(since)}, &n)
	return n > 0, err
}
