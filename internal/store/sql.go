package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
)

// engine is all that differs between the databases once they are open.
type engine struct {
	name    string
	rewrite func(query string) string
	// fault sorts an error of the driver.
	fault func(error) fault
	// countTables is the query for how many tables have the name $1.
	countTables string
	// clock is the expression for the database's own time, in microseconds; empty if it has none.
	clock string

	// Of one store.
	health     *health
	statements *atomic.Uint64 // that were run
}

// conn runs statements, in a transaction or outside. All SQL of the package passes through it, so this is the one
// place where text is rewritten and errors get their kind.
type conn struct {
	ctx    context.Context
	engine *engine
	db     interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
}

func (s *Store) reader(ctx context.Context) conn {
	return conn{ctx: ctx, engine: &s.engine, db: s.read}
}

// row scans the first row into dest; sql.ErrNoRows says there is none.
func (c conn) row(query string, args []any, dest ...any) error {
	found := false
	err := c.rows(query, args, func(scan scanner) error {
		if found {
			return nil
		}
		found = true
		return scan(dest...)
	})
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

type scanner func(dest ...any) error

// rows calls each for every row. The scanner leaves a zero value where SQL says NULL: the only NULLs there are come
// from outer joins that found nothing.
func (c conn) rows(query string, args []any, each func(scanner) error) error {
	c.engine.statements.Add(1)
	rows, err := c.db.QueryContext(c.ctx, c.engine.rewrite(query), args...)
	if err != nil {
		return c.engine.classify(c.ctx, err)
	}
	defer rows.Close()
	scan := func(dest ...any) error {
		for i, d := range dest {
			switch d := d.(type) {
			case *string:
				dest[i] = orZero[string]{d}
			case *int64:
				dest[i] = orZero[int64]{d}
			case *bool:
				dest[i] = orZero[bool]{d}
			}
		}
		return rows.Scan(dest...)
	}
	for rows.Next() {
		if err := each(scan); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return c.engine.classify(c.ctx, err)
	}
	return nil
}

// exec returns how many rows the statement touched.
func (c conn) exec(query string, args ...any) (int64, error) {
	c.engine.statements.Add(1)
	result, err := c.db.ExecContext(c.ctx, c.engine.rewrite(query), args...)
	if err != nil {
		return 0, c.engine.classify(c.ctx, err)
	}
	return result.RowsAffected()
}

type orZero[T any] struct{ to *T }

func (o orZero[T]) Scan(from any) error {
	var n sql.Null[T]
	if err := n.Scan(from); err != nil {
		return err
	}
	*o.to = n.V
	return nil
}
