package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/pgtest"
)

// Every version of the schema has a fixture in testdata/schema: what a database of that version may hold. Whoever adds
// a migration adds the fixture of the version it leads to, and says below what becomes of the older ones.
func TestEveryEarlierSchemaIsMigratedWithItsData(t *testing.T) {
	t.Parallel()
	for _, version := range versions(t) {
		fixture, err := os.ReadFile(filepath.Join("testdata", "schema", fmt.Sprintf("%05d.sql", version)))
		if err != nil {
			t.Errorf("version %d of the schema has no fixture: %v", version, err)
			continue
		}
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			forEachLocation(t, func(t *testing.T, where Location) {
				s := openAt(t, where, version)
				for _, statement := range strings.Split(string(fixture), ";\n") {
					if _, err := s.write.ExecContext(t.Context(), statement); err != nil {
						t.Fatalf("%v in %s", err, statement)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				for range 2 { // and nothing happens the second time
					s, err := Open(t.Context(), where)
					if err != nil {
						t.Fatal(err)
					}
					wantFixture(t, s, version)
					wantGatewayFixture(t, s, version)
					wantUsageFixture(t, s, version)
					wantChangesFixture(t, s, version)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// wantFixture checks, through today's eyes, what every fixture holds.
func wantFixture(t *testing.T, s *Store, version int64) {
	t.Helper()
	ctx := t.Context()
	created, updated := time.UnixMilli(1767225600123).UTC(), time.UnixMilli(1767312000456).UTC()
	const id = "019b76da-a800-7000-8000-00000000000"
	user := Account{
		User: freshet.User{ID: id + "1", Email: "Ada@Example.com", FirstName: "Ada", LastName: "Lovelace", Language: "en_GB",
			Role: freshet.RoleAdmin, Status: freshet.StatusActive,
			Quotas:    freshet.Quotas{Connections: 10, MessagesPerMonth: 0, RequestsPerMinute: -1, Topics: -1, DocumentBytes: -1},
			CreatedAt: created, UpdatedAt: updated},
		PasswordHash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA",
	}
	app := freshet.App{ID: id + "2", UserID: id + "1", Name: "prices", AutoProvisioningAllowed: true,
		Defaults:      freshet.Defaults{PollEvery: ptr(1500 * time.Millisecond), ForcePublishing: ptr(false)},
		SubscriberKey: "subscriber-key-current", PublisherKey: "publisher-key-current", SignatureKey: "signature-key-current",
		Quotas:    freshet.DefaultQuotas,
		CreatedAt: created, UpdatedAt: updated}
	if version >= 4 {
		app.Quotas.Connections, app.Quotas.RequestsPerMinute = 7, 0
	}
	if version >= 6 {
		user.Quotas.Topics, user.Quotas.DocumentBytes, app.Quotas.DocumentBytes = 50, 1000, 0
	}
	path, err := freshet.ParseItemPath(".id")
	if err != nil {
		t.Fatal(err)
	}
	poll := freshet.Topic{ID: id + "3", AppID: app.ID, Name: "eurusd", CreatedAt: created, UpdatedAt: updated,
		Publisher: freshet.Publisher{Type: freshet.HTTPPoller, URL: "https://example.com/?a=1&b=2",
			PollEvery: ptr(3 * time.Second), Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
	post := freshet.Topic{ID: id + "4", AppID: app.ID, Name: "it's", CreatedAt: created, UpdatedAt: updated,
		Publisher: freshet.Publisher{Type: freshet.HTTPPost, ForcePublishing: ptr(true),
			Payload: freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}}}

	wantSame(t, *must(s.AccountByEmail(ctx, "ada@example.com"))(t), user)
	wantSame(t, must(s.Users(ctx, "lovelace", Page{Limit: 10}))(t),
		Listing[freshet.User]{Items: []freshet.User{user.User}, Total: 1})
	wantSame(t, *must(s.SessionUser(ctx, "session", created))(t), user.User)
	wantSame(t, must(s.KnowsNetwork(ctx, "ada@example.com", "network", created))(t), version >= 5)
	wantSame(t, *must(s.App(ctx, app.ID))(t), app)
	wantSame(t, must(s.Topics(ctx, app.ID, Page{Limit: 10}))(t), TopicListing{App: withoutKeys(&app),
		Listing: Listing[freshet.Topic]{Items: []freshet.Topic{poll, post}, Total: 2}})
	wantSame(t, must(s.KeyRecord(ctx, freshet.SubscriberKey, "subscriber-key-before"))(t).KeyRecord, freshet.KeyRecord{AppID: app.ID,
		Kind: freshet.SubscriberKey, Key: "subscriber-key-before", CreatedAt: created, RevokedAt: updated})
	wantSame(t, must(s.Audit(ctx, Page{Limit: 10}))(t), Listing[AuditEntry]{Total: 1, Items: []AuditEntry{
		{ID: id + "5", At: created, ActorID: id + "1", Action: "app.create", Subject: id + "2", Detail: "{}"}}})
	update(t, s, func(tx *Tx) error {
		secret, err := tx.Secret("token", func() []byte { return nil })
		if string(secret) != "secret" {
			t.Errorf("the secret is %q", secret)
		}
		return err
	})
}

// wantGatewayFixture checks what fixtures hold from version 2 on; before it there is only what the migration adds.
func wantGatewayFixture(t *testing.T, s *Store, version int64) {
	t.Helper()
	ctx := t.Context()
	if api := must(s.API(ctx, "publish"))(t); !api.BuiltIn {
		t.Errorf("the platform's own API is %+v", api)
	}
	if version < 2 {
		return
	}
	created := time.UnixMilli(1767225600123).UTC()
	const id = "019b76da-a800-7000-8000-00000000000"
	wantSame(t, must(s.APIs(ctx, APIFilter{}, Cursor{Limit: 10}))(t).Items, []freshet.API{{ID: id + "6", Name: "quote",
		RequestHost: "quote.example.com", RequestPath: "/quote", StripPath: true, UpstreamURL: "https://example.com/v2", CreatedAt: created}})
	wantSame(t, *must(s.Plugin(ctx, PluginFilter{ID: id + "8"}))(t), freshet.Plugin{ID: id + "8", APIID: id + "6", Name: "rate-limiting",
		Config: []byte(`{"minute":5}`), Enabled: true, CreatedAt: created})
	wantSame(t, *must(s.Consumer(ctx, "bob"))(t), freshet.Consumer{ID: id + "7", Username: "bob", CustomID: "b-1", CreatedAt: created})
	wantSame(t, *must(s.Credential(ctx, CredentialFilter{Key: "bobs-key"}))(t), freshet.Credential{ID: id + "9", ConsumerID: id + "7",
		Key: "bobs-key", CreatedAt: created})
	wantSame(t, must(s.GatewayRevision(ctx))(t), Revision{Newest: 5})
}

// wantChangesFixture checks the log of changes that fixtures have from version 7 on.
func wantChangesFixture(t *testing.T, s *Store, version int64) {
	at := cursorOf(t, s)
	if version < 7 {
		wantSame(t, at.revision, 0)
		return
	}
	at.revision, at.mark = 1, 4711
	wantChanges(t, s, &at, Subject{SubjectApp, "019b76da-a800-7000-8000-000000000002"})
}

// wantUsageFixture checks what fixtures hold from version 3 on, and what version 4 adds to it.
func wantUsageFixture(t *testing.T, s *Store, version int64) {
	t.Helper()
	if version < 3 {
		return
	}
	ctx, hour := t.Context(), time.UnixMilli(1767225600000).UTC()
	const id = "019b76da-a800-7000-8000-00000000000"
	used := freshet.Usage{Messages: 1, Bytes: 2, FullBytes: 3, Publications: 4, Polls: 5, PollsNotModified: 6, Connected: 7 * time.Second}
	ofApp := int64(0)
	if version >= 4 {
		used.PollsFailed, ofApp = 1, 1
		for i := range used.Lag {
			used.Lag[i] = int64(i)
		}
	}
	span := Span{From: hour, To: hour.Add(time.Hour)}
	wantSame(t, must(s.UserUsage(ctx, id+"1", span))(t), &OwnedUsage{UserID: id + "1", Hours: []freshet.UsageHour{{Hour: hour, Usage: used}}})
	wantSame(t, must(s.MonthMessages(ctx, []string{id + "1"}, freshet.Month(hour)))(t)[id+"1"], int64(1))
	wantSame(t, must(s.AppMonthMessages(ctx, []string{id + "2"}, freshet.Month(hour)))(t)[id+"2"], ofApp)
}

func TestANewerSchemaIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	forEachLocation(t, func(t *testing.T, where Location) {
		s := openAt(t, where, 1)
		_, err := s.write.ExecContext(t.Context(), "INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (4711, TRUE)")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), where)
		wantKind(t, err, freshet.Conflict)
		for _, part := range []string{"4711", "newer freshet", "backup"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is more than one sentence", err)
		}
	})
}

func TestNodesThatStartTogetherMigrateOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const nodes = 5
	url := pgtest.URL(t)
	name, admin := adminOf(t, url)
	gate := openAt(t, Location{URL: url}, 0)
	defer gate.Close()
	held, err := gate.write.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := (advisoryLock{}).SessionLock(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	var opened sync.WaitGroup
	for range nodes {
		opened.Go(func() {
			s, err := Open(t.Context(), Location{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	allOpened := make(chan struct{})
	go func() { opened.Wait(); close(allOpened) }()
	for waiting := 0; waiting < nodes; {
		select {
		case <-allOpened:
			t.Fatal("the nodes did not wait for their turn")
		default:
		}
		err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE d.datname = $1 AND l.locktype = 'advisory' AND NOT l.granted`, name).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join((advisoryLock{}).SessionUnlock(t.Context(), held), held.Close()); err != nil {
		t.Fatal(err)
	}
	<-allOpened
	var applied int64
	err = gate.reader(t.Context()).row("SELECT count(*) FROM "+versionTable+" WHERE version_id = 1", nil, &applied)
	if err != nil || applied != 1 {
		t.Errorf("the first migration ran %d times, %v", applied, err)
	}
}

func TestAMigrationThatFailsLeavesTheSchemaAsItWas(t *testing.T) {
	t.Parallel()
	forEachLocation(t, func(t *testing.T, where Location) {
		s := openAt(t, where, 1)
		t.Cleanup(func() { s.Close() })
		broken := s.upTo(t, 1)
		broken["00002_broken.sql"] = &fstest.MapFile{
			Data: []byte("-- +goose Up\nCREATE TABLE half (id TEXT);\nCREATE NONSENSE;\n")}
		if err := s.migrateTo(t.Context(), broken); err == nil {
			t.Fatal("a broken migration succeeded")
		}
		version, err := s.schemaVersion(t.Context())
		if err != nil || version != 1 {
			t.Errorf("the schema is at version %d, %v", version, err)
		}
		if _, err := s.write.ExecContext(t.Context(), "SELECT * FROM half"); err == nil {
			t.Error("half of the migration stayed")
		}
	})
}

func forEachLocation(t *testing.T, test func(t *testing.T, where Location)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, Location{Dir: t.TempDir()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Location{URL: pgtest.URL(t)})
	})
}

// openAt opens an empty database and migrates it up to the version only; 0 leaves it empty.
func openAt(t *testing.T, where Location, version int64) *Store {
	t.Helper()
	open := func() (*Store, error) { return openSQLite(t.Context(), where.Dir, slog.New(slog.DiscardHandler)) }
	if where.URL != "" {
		open = func() (*Store, error) { return openPostgres(t.Context(), where.URL, slog.New(slog.DiscardHandler)) }
	}
	s, err := open()
	if err == nil && version > 0 {
		err = s.migrateTo(t.Context(), s.upTo(t, version))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// upTo is the migrations that lead to the version.
func (s *Store) upTo(t *testing.T, version int64) fstest.MapFS {
	t.Helper()
	some := fstest.MapFS{}
	all := must(s.migrations())(t)
	names, err := fs.Glob(all, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			t.Fatal(err)
		}
		if v <= version {
			text, err := fs.ReadFile(all, name)
			if err != nil {
				t.Fatal(err)
			}
			some[name] = &fstest.MapFile{Data: text}
		}
	}
	return some
}

func versions(t *testing.T) (all []int64) {
	t.Helper()
	names, err := fs.Glob(embedded, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}
