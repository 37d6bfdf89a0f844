package store

import (
	"context"
	"time"

	"github.com/freshet-io/freshet"
)

// FormerKeys returns the keys that the app had before its present one, the last one first, as many as anybody may still use.
func (s *Store) FormerKeys(ctx context.Context, appID string, kind freshet.KeyKind) ([]freshet.KeyRecord, error) {
	const most = 8
	var keys []freshet.KeyRecord
	err := s.reader(ctx).rows(`SELECT value, created_at, revoked_at FROM keys WHERE app_id = $1 AND kind = $2 AND revoked_at > 0
		ORDER BY revoked_at DESC, created_at DESC LIMIT $3`, []any{appID, string(kind), int64(most)}, func(scan scanner) error {
		var value string
		var created, revoked int64
		err := scan(&value, &created, &revoked)
		keys = append(keys, freshet.KeyRecord{
			AppID: appID, Kind: kind, Key: freshet.Key(value), CreatedAt: fromMillis(created), RevokedAt: fromMillis(revoked),
		})
		return err
	})
	return keys, err
}

// longRevoked is when keys were revoked that are not good for a moment longer, whatever the time is on which machine. 0 would mean
// current.
const longRevoked = 1

// ReplaceKey makes key the app's current one of its kind; its predecessor stays behind, revoked from revokeOldAt on, and so
// do older ones whose overlap would last longer. The zero time revokes them at once, whatever any clock says.
// The app counts as changed now. A key that any app has or had is ErrKeyTaken.
func (tx *Tx) ReplaceKey(appID string, kind freshet.KeyKind, key freshet.Key, now, revokeOldAt time.Time) error {
	tx.changed(SubjectApp, appID)
	// Touching the app first lets only one renewal in at a time.
	if err := tx.write("app", `UPDATE apps SET updated_at = $2 WHERE id = $1`, appID, millis(now)); err != nil {
		return err
	}
	_, err := tx.writeAny(`UPDATE keys SET revoked_at = $3 WHERE app_id = $1 AND kind = $2
			AND (revoked_at = 0 OR revoked_at > $3)`,
		appID, string(kind), max(millis(revokeOldAt), longRevoked))
	if err != nil {
		return err
	}
	return tx.createKey(appID, kind, key, now)
}

func (tx *Tx) createKey(appID string, kind freshet.KeyKind, key freshet.Key, now time.Time) error {
	return tx.write("app", `INSERT INTO keys (app_id, kind, value, created_at, revoked_at) VALUES ($1, $2, $3, $4, 0)`,
		appID, string(kind), key.Reveal(), millis(now))
}
