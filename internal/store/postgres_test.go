package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
)

func TestADatabaseThatCannotBeReachedIsOneSentenceWithoutThePassword(t *testing.T) {
	t.Parallel()
	for where, kind := range map[string]freshet.Kind{
		"postgres://ada:hunter2@127.0.0.1:1/prices?sslmode=disable": freshet.Unavailable,
		"postgres://ada:hunter2@[::1/prices":                        freshet.Invalid,
		"postgres://ada:hunter2@127.0.0.1:port/prices":              freshet.Invalid,
		"mysql://ada:hunter2@127.0.0.1/prices":                      freshet.Invalid,
	} {
		_, err := Open(t.Context(), Location{URL: where})
		wantSentence(t, err, kind, "database")
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v shows the password", err)
		}
	}
}

// signal is a log that tells of its first line.
type signal struct {
	slog.Handler
	lines chan string
}

func (s signal) Handle(_ context.Context, r slog.Record) error { s.lines <- r.Message; return nil }

func newSignal() signal {
	return signal{slog.NewTextHandler(io.Discard, nil), make(chan string, 100)}
}

func TestWhoStartsBeforeTheDatabaseWaitsForIt(t *testing.T) {
	t.Parallel()
	link := pgtest.NewLink(t, pgtest.URL(t))
	link.GoDark()
	log := newSignal()
	where := Location{URL: link.URL + "&connect_timeout=1", Patience: time.Hour, Log: slog.New(log)}
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), where)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	if line := <-log.lines; line != "waiting for PostgreSQL" {
		t.Errorf("the log says %q", line)
	}
	link.Open()
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if line := <-log.lines; line != "PostgreSQL answers" {
		t.Errorf("the log says %q", line)
	}
}

func TestWaitingForTheDatabaseEndsWhenTheProcessIsToldTo(t *testing.T) {
	t.Parallel()
	log := newSignal()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-log.lines; cancel() }()
	_, err := Open(ctx, Location{URL: "postgres://ada:hunter2@127.0.0.1:1/prices?sslmode=disable", Patience: time.Hour, Log: slog.New(log)})
	wantSentence(t, err, freshet.Unavailable, "database")
}

// TestWhatNoWaitingHelpsIsToldAtOnce or the test never ends.
func TestWhatNoWaitingHelpsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	where := pgtest.URL(t)
	name, _ := adminOf(t, where)
	for _, wrong := range []string{
		"postgres://ada@[::1/prices",
		strings.Replace(where, "/"+name, "/nobody_made_this", 1),
		strings.Replace(where, "postgres://postgres", "postgres://nobody", 1),
	} {
		if _, err := Open(t.Context(), Location{URL: wrong, Patience: time.Hour}); err == nil {
			t.Errorf("%s was opened", wrong)
		}
	}
}

func TestTheTimeIsTheDatabases(t *testing.T) {
	t.Parallel()
	s := open(t, Location{URL: pgtest.URL(t)})
	near := func() bool { return time.Until(s.Now()).Abs() < time.Hour } // it runs on this machine
	if !near() {
		t.Error("its clock was not read when it was opened")
	}
	s.ahead.Store(int64(2 * time.Hour)) // as if our clock had been set
	if err := s.ReadClock(t.Context()); err != nil || !near() {
		t.Errorf("its clock was not read again: %v", err)
	}
}

func TestADatabaseThatCannotHoldEveryNameIsRefused(t *testing.T) {
	t.Parallel()
	where := pgtest.URL(t)
	name, admin := adminOf(t, where)
	latin := name + "_latin"
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+latin+" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + latin) })
	_, err := Open(t.Context(), Location{URL: strings.Replace(where, "/"+name, "/"+latin, 1)})
	wantSentence(t, err, freshet.Invalid, "LATIN1")
}

// TestCommitsWaitForTheDisk whatever the database does for others.
func TestCommitsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	for theirs, ours := range map[string]string{"off": "on", "on": "on", "remote_apply": "remote_apply"} {
		where := pgtest.URL(t)
		name, admin := adminOf(t, where)
		if _, err := admin.ExecContext(t.Context(), "ALTER DATABASE "+name+" SET synchronous_commit = "+theirs); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := open(t, Location{URL: where}).write.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&got); err != nil || got != ours {
			t.Errorf("where it is %s for others, it is %s for us, %v", theirs, got, err)
		}
	}
}

func TestADatabaseThatGoesAwayIsUnavailableAndComesBack(t *testing.T) {
	t.Parallel()
	where := pgtest.URL(t)
	s := open(t, Location{URL: where})
	user, _, _ := household(t, s, "ada@example.com")
	name, admin := adminOf(t, where)
	run := func(statement string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	run("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false")
	run("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '" + name + "'")
	for range 3 {
		_, err := s.User(t.Context(), user.ID)
		wantKind(t, err, freshet.Unavailable)
		wantKind(t, s.Update(t.Context(), func(tx *Tx) error { return tx.DeleteUser(user.ID) }), freshet.Unavailable)
	}
	run("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true")
	must(s.User(t.Context(), user.ID))(t)
}

func TestADeadlockIsResolvedByTryingAgain(t *testing.T) {
	t.Parallel()
	s := open(t, Location{URL: pgtest.URL(t) + "&deadlock_timeout=10ms"})
	a, _, _ := household(t, s, "a@example.com")
	b, _, _ := household(t, s, "b@example.com")
	holds := map[string]chan struct{}{a.ID: make(chan struct{}), b.ID: make(chan struct{})}
	var runs atomic.Int64
	inParallel(2, func(i int) {
		first, second := a.ID, b.ID
		if i == 1 {
			first, second = b.ID, a.ID
		}
		announce := sync.OnceFunc(func() { close(holds[first]) })
		err := s.Update(t.Context(), func(tx *Tx) error {
			runs.Add(1)
			if _, err := tx.LockUser(first); err != nil {
				return err
			}
			announce()
			select { // now each holds what the other wants
			case <-holds[second]:
			case <-t.Context().Done():
			}
			_, err := tx.LockUser(second)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if runs.Load() < 3 {
		t.Error("there was no deadlock to resolve")
	}
}

func adminOf(t *testing.T, where string) (name string, admin *sql.DB) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin, err = sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	return name, admin
}

func TestUpdateRunsTheActAgainAfterItLost(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		runs := 0
		act := func(tx *Tx) error {
			runs++
			if err := tx.CreateUser(newAccount("ada@example.com")); err != nil {
				return err
			}
			if runs < 3 {
				return contention{errors.New("lost")}
			}
			return nil
		}
		if err := s.Update(t.Context(), act); err != nil || runs != 3 {
			t.Errorf("%d runs, %v", runs, err)
		}
		runs = 0
		always := func(tx *Tx) error { runs++; return contention{unavailable(errors.New("lost"))} }
		wantKind(t, s.Update(t.Context(), always), freshet.Unavailable)
		if runs != maxAttempts {
			t.Errorf("%d runs, want %d", runs, maxAttempts)
		}
	})
}

func TestACallerThatGoesAwayIsToldSo(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, _, _ := household(t, s, "ada@example.com")
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Update(ctx, func(tx *Tx) error {
			if err := tx.DeleteUser(user.ID); err != nil {
				return err
			}
			cancel()
			_, err := tx.LockUser(user.ID)
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := s.User(ctx, user.ID); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		must(s.User(t.Context(), user.ID))(t)
	})
}

func TestAReaderWaitsForTheSchemaAndNeedsNoRightToWrite(t *testing.T) {
	t.Parallel()
	where := pgtest.URL(t)
	admin, err := sql.Open("pgx", where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	for _, statement := range []string{
		"CREATE ROLE freshet_reader LOGIN",
		"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO freshet_reader",
	} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_, _ = admin.Exec("DROP OWNED BY freshet_reader")
		_, _ = admin.Exec("DROP ROLE freshet_reader")
	})
	as, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	as.User = url.User("freshet_reader")
	opened := make(chan *Store, 1)
	go func() {
		s, err := Open(t.Context(), Location{URL: as.String(), Reader: true})
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	writer := open(t, Location{URL: where})
	user, _, _ := household(t, writer, "ada@example.com")
	reader := <-opened
	if reader == nil {
		return
	}
	defer reader.Close()
	must(reader.User(t.Context(), user.ID))(t)
	if err := reader.Update(t.Context(), func(tx *Tx) error { return tx.DeleteUser(user.ID) }); err == nil {
		t.Error("a reader may write")
	}
}

func TestAReaderThatWaitsInVainSaysWhatToStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, Location{URL: pgtest.URL(t), Reader: true})
	if err == nil {
		t.Error("it opened an empty database")
	}
}
