package store

import (
	"context"
	"time"
)

// AuditEntry says who did what to which thing.
type AuditEntry struct {
	ID      string
	At      time.Time
	ActorID string
	Action  string
	Subject string
	Detail  string // JSON
}

// Audit lists the trail, newest first.
func (s *Store) Audit(ctx context.Context, page Page) (Listing[AuditEntry], error) {
	var list Listing[AuditEntry]
	offset, limit := page.args()
	err := s.reader(ctx).rows(`
		SELECT c.total, e.id, e.happened_at, e.actor_id, e.action, e.subject, e.detail
		FROM (SELECT count(*) AS total FROM audit) c
		LEFT JOIN (SELECT * FROM audit ORDER BY happened_at DESC, id DESC LIMIT $2 OFFSET $1) e ON TRUE
		ORDER BY e.happened_at DESC, e.id DESC`, []any{offset, limit}, func(scan scanner) error {
		var e AuditEntry
		var at int64
		err := scan(&list.Total, &e.ID, &at, &e.ActorID, &e.Action, &e.Subject, &e.Detail)
		if err == nil && e.ID != "" {
			e.At = fromMillis(at)
			list.Items = append(list.Items, e)
		}
		return err
	})
	return list, err
}

// AppendAudit adds to the trail, in the same transaction as the act it tells of.
func (tx *Tx) AppendAudit(e AuditEntry) error {
	return tx.write("entry", `INSERT INTO audit (id, happened_at, actor_id, action, subject, detail)
		VALUES ($1, $2, $3, $4, $5, $6)`, e.ID, millis(e.At), e.ActorID, e.Action, e.Subject, e.Detail)
}
