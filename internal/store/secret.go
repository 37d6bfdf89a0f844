package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
)

// Secret returns the secret of that name. The first caller of all nodes makes it from fresh.
func (tx *Tx) Secret(name string, fresh func() []byte) ([]byte, error) {
	_, err := tx.writeAny(`INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
		name, base64.StdEncoding.EncodeToString(fresh()))
	if err != nil {
		return nil, err
	}
	var value string
	if err := tx.row(`SELECT value FROM secrets WHERE name = $1`, []any{name}, &value); err != nil {
		tx.failed = err
		return nil, err
	}
	return base64.StdEncoding.DecodeString(value)
}

// SaveSecret keeps the value under that name, instead of the one before it.
func (tx *Tx) SaveSecret(name string, value []byte) error {
	_, err := tx.writeAny(`INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		name, base64.StdEncoding.EncodeToString(value))
	return err
}

// Secret returns the secret of that name, if somebody has made it.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	var value string
	err := s.reader(ctx).row(`SELECT value FROM secrets WHERE name = $1`, []any{name}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("secret")
	}
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(value)
}

// EraseSecret removes the secret of that name. On SQLite nothing of it is left in the files: the row is overwritten, and the
// write-ahead log, which still has its page as it was, is emptied.
func (s *Store) EraseSecret(ctx context.Context, name string) error {
	remove := func(tx *Tx) error {
		_, err := tx.writeAny(`DELETE FROM secrets WHERE name = $1`, name)
		return err
	}
	if !s.embedded() {
		return s.Update(ctx, remove)
	}
	if err := s.pragma(ctx, "secure_delete = ON"); err != nil {
		return err
	}
	err := s.Update(ctx, remove)
	if err == nil {
		err = s.pragma(ctx, "wal_checkpoint(TRUNCATE)")
	}
	return errors.Join(err, s.pragma(ctx, "secure_delete = OFF"))
}

// Compact writes the database anew, without what was deleted or replaced in it. PostgreSQL does so by itself.
func (s *Store) Compact(ctx context.Context) error {
	if !s.embedded() {
		return nil
	}
	if _, err := (conn{ctx: ctx, engine: &s.engine, db: s.write}).exec("VACUUM"); err != nil {
		return err
	}
	return s.pragma(ctx, "wal_checkpoint(TRUNCATE)")
}

func (s *Store) embedded() bool { return s.engine.name == sqliteEngine.name }

// pragma runs one on the writing connection, of which SQLite has one.
func (s *Store) pragma(ctx context.Context, text string) error {
	db := conn{ctx: ctx, engine: &s.engine, db: s.write}
	return db.rows("PRAGMA "+text, nil, ignore)
}
