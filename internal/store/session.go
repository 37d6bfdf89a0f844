package store

import "time"

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
