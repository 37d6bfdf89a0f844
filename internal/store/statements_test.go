package store

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
)

// statements counts what really reaches the database, whichever way it got there.
type statements struct{ n atomic.Int64 }

func (c *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestEveryReadIsOneStatement(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := open(t, Location{Dir: dir})
		count := &statements{}
		traced, err := driver.Open(sqliteName(filepath.Join(dir, databaseFile)), func(c *sqlite3.Conn) error {
			if err := c.Exec(readerPragmas); err != nil {
				return err
			}
			return c.Trace(sqlite3.TRACE_STMT, func(sqlite3.TraceEvent, any, any) error { count.n.Add(1); return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		s.read.Close()
		s.read = traced
		wantOneStatementEach(t, s, count)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		s := open(t, Location{URL: url})
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		count := &statements{}
		config.Tracer = count
		s.read = stdlib.OpenDB(*config)
		wantOneStatementEach(t, s, count)
	})
}

func wantOneStatementEach(t *testing.T, s *Store, count *statements) {
	ctx := t.Context()
	user, app, topic := household(t, s, "ada@example.com")
	update(t, s, func(tx *Tx) error {
		return tx.CreateSession(Session{ID: "s", UserID: user.ID, ExpiresAt: now.AddDate(1, 0, 0)})
	})
	fill(t, s, app.ID, 3)
	if err := s.Ping(ctx); err != nil { // connects
		t.Fatal(err)
	}
	cursor := cursorOf(t, s)
	page := Page{Offset: 1, Limit: 2}
	for name, read := range map[string]func() error{
		"Ping":           func() error { return s.Ping(ctx) },
		"User":           func() error { _, err := s.User(ctx, user.ID); return err },
		"AccountByEmail": func() error { _, err := s.AccountByEmail(ctx, "ada@example.com"); return err },
		"Users":          func() error { _, err := s.Users(ctx, "", page); return err },
		"Users matching": func() error { _, err := s.Users(ctx, "ada", page); return err },
		"SessionUser":    func() error { _, err := s.SessionUser(ctx, "s", now); return err },
		"KnowsNetwork":   func() error { _, err := s.KnowsNetwork(ctx, "ada@example.com", "n", now); return err },
		"App":            func() error { _, err := s.App(ctx, app.ID); return err },
		"Apps":           func() error { _, err := s.Apps(ctx, user.ID, page); return err },
		"Topic":          func() error { _, err := s.Topic(ctx, topic.ID); return err },
		"TopicAccess":    func() error { _, err := s.TopicAccess(ctx, topic.ID); return err },
		"TopicRecord":    func() error { _, err := s.TopicRecord(ctx, topic.ID); return err },
		"AppRecord":      func() error { _, err := s.AppRecord(ctx, app.ID); return err },
		"ChangesSince":   func() error { _, err := s.ChangesSince(ctx, cursor); return err },
		"Topics":         func() error { _, err := s.Topics(ctx, app.ID, page); return err },
		"KeyRecord":      func() error { _, err := s.KeyRecord(ctx, freshet.SubscriberKey, app.SubscriberKey); return err },
		"Audit":          func() error { _, err := s.Audit(ctx, page); return err },
		"Admins":         func() error { _, err := s.Admins(ctx); return err },
		"Revision":       func() error { _, err := s.GatewayRevision(ctx); return err },
		"API":            func() error { _, err := s.API(ctx, "api"); return err },
		"APIs":           func() error { _, err := s.APIs(ctx, APIFilter{BuiltIn: true}, Cursor{Limit: 1}); return err },
		"Plugins":        func() error { _, err := s.Plugins(ctx, PluginFilter{Name: "x"}, Cursor{Limit: 1}); return err },
	} {
		before := count.n.Load()
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := count.n.Load() - before; n != 1 {
			t.Errorf("%s is %d statements", name, n)
		}
	}
}
