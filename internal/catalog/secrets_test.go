package catalog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/keyfile"
	"github.com/freshet-io/freshet/internal/store"
)

// vault is a world that keeps its secret in a file, with a session and credentials that depend on it.
type vault struct {
	*world
	path   string
	token  string
	topics []string
	asked  SubscribeAsk // of a topic that a subscriber made
	logs   *lines
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const vaultCanary = "canary-value"

func openVault(t *testing.T, change func(*Options)) *vault {
	t.Helper()
	v := &vault{path: filepath.Join(t.TempDir(), keyfile.Name), logs: &lines{}}
	v.world = openWorld(t, v.with(change))
	ada := v.provider(nil)
	made, err := v.CreateTopic(t.Context(), ada.actor, ada.app.ID, func(topic *freshet.Topic) error {
		every := freshet.DefaultPollEvery
		topic.Name, topic.Publisher = "T", freshet.Publisher{
			Type: freshet.HTTPPoller, URL: "http://x.example.com/", PollEvery: &every, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
			Credentials: freshet.Credentials{Headers: []freshet.HeaderField{{Name: "X-Key", Value: vaultCanary}}},
		}
		return nil
	})
	v.check(err)
	v.asked = sourceAsk(ada.app.SubscriberKey, "http://x.example.com/?key=a", "Authorization", vaultCanary)
	v.topics = []string{made.ID, v.provide(v.asked).ID}
	token, err := v.SignIn(t.Context(), freshet.FixedAdminEmail, freshet.FixedAdminPassword, "a")
	v.check(err)
	v.token = token.Text.Reveal()
	return v
}

// with keeps the secret in the vault's file, unless change says otherwise.
func (v *vault) with(change func(*Options)) func(*Options) {
	return func(o *Options) {
		o.KeyFile, o.Log = v.path, slog.New(slog.NewTextHandler(v.logs, nil))
		if change != nil {
			change(o)
		}
	}
}

func (v *vault) restart(change func(*Options)) {
	v.t.Helper()
	v.check(v.reopen(v.with(change)))
}

func (v *vault) rotate(change func(*Options)) (Rotation, error) {
	o := v.options()
	v.with(change)(&o)
	return Rotate(v.t.Context(), v.store, o)
}

// opens reports whether the credentials of all topics can be read.
func (v *vault) opens() bool {
	v.t.Helper()
	readable := 0
	for _, id := range v.topics {
		if s, err := v.Source(v.t.Context(), id); err == nil && s.Topic.Publisher.Headers[0].Value == vaultCanary {
			readable++
		}
	}
	if readable != 0 && readable != len(v.topics) {
		v.t.Errorf("%d of %d topics can be read", readable, len(v.topics))
	}
	return readable > 0
}

func (v *vault) signedIn() bool {
	_, err := v.Authenticate(v.t.Context(), v.token)
	return err == nil
}

func (v *vault) keys() keyfile.Keys {
	v.t.Helper()
	k, err := keyfile.Read(v.path)
	v.check(err)
	return k
}

// wantStored checks what of the secret itself is in the database.
func (v *vault) wantStored(want []byte) {
	v.t.Helper()
	got, err := v.store.Secret(v.t.Context(), storedSecret)
	if want == nil && freshet.KindOf(err) == freshet.NotFound {
		return
	}
	if err != nil || !bytes.Equal(got, want) {
		v.t.Errorf("the database has %x, %v; want %x", got, err, want)
	}
}

func TestTheSecretIsInAFileAndNotInTheDatabase(t *testing.T) {
	t.Parallel()
	v := openVault(t, nil)
	v.wantStored(nil)
	first := v.keys().Current
	if !bytes.Equal(first, v.secret) {
		t.Error("the file has another secret")
	}
	v.restart(nil)
	if !v.opens() || !v.signedIn() || !bytes.Equal(v.keys().Current, first) {
		t.Error("a restart made another secret")
	}
}

func TestASecretInTheDatabaseMovesToTheFileAndStaysGood(t *testing.T) {
	t.Parallel()
	v := openVault(t, func(o *Options) { o.KeyFile = "" }) // as it was before there were files
	before := bytes.Clone(v.secret)
	v.wantStored(before)
	for range 2 { // the second time nothing is left to move
		v.restart(nil)
		if !v.opens() || !v.signedIn() {
			t.Error("the upgrade lost sessions or credentials")
		}
		v.wantStored(nil)
		if k := v.keys(); !bytes.Equal(k.Current, before) || len(k.Previous) > 0 {
			t.Error("the file has another secret")
		}
	}
	// A crash after the file was written and before the database was cleared.
	v.check(v.store.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveSecret(storedSecret, before) }))
	v.restart(nil)
	v.wantStored(nil)
	if !v.opens() || !v.signedIn() {
		t.Error("the second half of the upgrade lost sessions or credentials")
	}
}

func TestRotatingSealsEverythingAnewAndEndsSessions(t *testing.T) {
	t.Parallel()
	v := openVault(t, nil)
	before := v.keys().Current
	done, err := v.rotate(nil)
	v.check(err)
	if done != (Rotation{Resealed: 2}) {
		t.Errorf("%+v", done)
	}
	after := v.keys()
	if bytes.Equal(after.Current, before) || len(after.Previous) > 0 {
		t.Error("the file still has the secret before")
	}
	v.restart(nil)
	if !v.opens() {
		t.Error("credentials are lost")
	}
	if v.signedIn() {
		t.Error("a token of the secret before is good")
	}
	// Nobody who has the secret before can do anything with it.
	old, err := newSeals(before)
	v.check(err)
	topics, err := v.store.PollerTopics(t.Context(), "", 10)
	v.check(err)
	for i := range topics {
		if _, err := old.open(&topics[i]); !errors.Is(err, errSeal) {
			t.Errorf("the secret before opens %s: %v", topics[i].Name, err)
		}
	}
	// Who subscribes again gets a topic of its own, since its identifier depends on the secret; the one before is retired.
	if again := v.provide(v.asked); again.ID == v.topics[1] {
		t.Error("an identifier made with the secret before is used again")
	}
}

func TestARotationThatWasInterruptedLosesNothing(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]int{"before anything was sealed": 0, "in the middle": 1, "at the end": 2} {
		for _, finish := range []string{"start", "rotate"} {
			t.Run(name+", then "+finish, func(t *testing.T) {
				t.Parallel()
				v := openVault(t, nil)
				next := keyfile.Keys{Current: keyfile.New(), Previous: [][]byte{v.keys().Current}}
				v.check(keyfile.Write(v.path, next))
				both, err := newSeals(next.Current, next.Previous...)
				v.check(err)
				topics, err := v.store.PollerTopics(t.Context(), "", 10)
				v.check(err)
				v.check(v.store.Update(t.Context(), func(tx *store.Tx) error {
					_, err := resealSome(tx, both, topics[:sealed])
					return err
				}))
				if finish == "rotate" {
					done, err := v.rotate(nil)
					v.check(err)
					if done != (Rotation{Resealed: 2 - sealed}) {
						t.Errorf("%+v", done)
					}
				}
				v.restart(nil)
				if k := v.keys(); !bytes.Equal(k.Current, next.Current) || len(k.Previous) > 0 {
					t.Error("the rotation was not finished")
				}
				if !v.opens() {
					t.Error("credentials are lost")
				}
			})
		}
	}
}

func TestAGivenSecretTakesOverWhatWasSealedBefore(t *testing.T) {
	t.Parallel()
	given := func(secret, previous string) func(*Options) {
		return func(o *Options) { o.TokenSecret, o.PreviousSecret = []byte(secret), []byte(previous) }
	}
	t.Run("from the key file", func(t *testing.T) {
		t.Parallel()
		v := openVault(t, nil)
		v.restart(given("given", ""))
		if !v.opens() || v.signedIn() {
			t.Error("the first start with token.secret")
		}
		v.check(os.Remove(v.path))
		v.restart(given("given", ""))
		if !v.opens() {
			t.Error("credentials depend on the key file still")
		}
	})
	t.Run("from the database", func(t *testing.T) {
		t.Parallel()
		v := openVault(t, func(o *Options) { o.KeyFile = "" })
		v.restart(given("given", ""))
		v.wantStored(nil)
		if !v.opens() {
			t.Error("credentials are lost")
		}
	})
	t.Run("from another", func(t *testing.T) {
		t.Parallel()
		v := openVault(t, given("one", ""))
		v.restart(given("two", "one"))
		v.restart(given("two", ""))
		if !v.opens() {
			t.Error("credentials are lost")
		}
	})
}

func TestNodesThatShareADatabaseChangeTheirSecretTogether(t *testing.T) {
	t.Parallel()
	shared := func(secret string) func(*Options) {
		return func(o *Options) { o.KeyFile, o.Shared, o.TokenSecret = "", true, []byte(secret) }
	}
	v := openVault(t, shared(""))
	stored := bytes.Clone(v.secret)
	if !strings.Contains(v.logs.String(), "set token.secret on all nodes") {
		t.Errorf("nobody is told: %s", v.logs)
	}
	_, err := v.rotate(shared(""))
	wantKind(t, "rotate", err, freshet.Invalid)
	if err == nil || !strings.Contains(err.Error(), "token.secret") {
		t.Errorf("%v", err)
	}
	// The first node restarts. Others still have the secret of the database, and must be able to read everything.
	v.restart(shared("given"))
	v.wantStored(stored)
	if !v.opens() || !strings.Contains(v.logs.String(), "freshet secrets rotate") {
		t.Errorf("the first node with token.secret: %s", v.logs)
	}
	other, err := newSeals(stored)
	v.check(err)
	topics, err := v.store.PollerTopics(t.Context(), "", 10)
	v.check(err)
	for i := range topics {
		if _, err := other.open(&topics[i]); err != nil {
			t.Errorf("nodes that were not restarted yet: %v", err)
		}
	}
	// All have it. Somebody rotates while they run.
	done, err := v.rotate(shared("given"))
	v.check(err)
	if done != (Rotation{Resealed: 2}) || !v.opens() {
		t.Errorf("%+v", done)
	}
	v.wantStored(nil)
	v.restart(shared("given"))
	if !v.opens() {
		t.Error("credentials are lost")
	}
}

func TestALostSecretIsSaidAtEveryStartUntilSomebodyActs(t *testing.T) {
	t.Parallel()
	v := openVault(t, nil)
	v.check(os.Remove(v.path))
	const said = "sealed with a secret that is not here"
	for range 2 {
		*v.logs = lines{}
		v.restart(nil)
		if v.opens() || v.signedIn() || !strings.Contains(v.logs.String(), said) {
			t.Errorf("%s", v.logs)
		}
	}
	done, err := v.rotate(nil)
	v.check(err)
	if done != (Rotation{Lost: 2}) {
		t.Errorf("%+v", done)
	}
	*v.logs = lines{}
	v.restart(nil)
	if strings.Contains(v.logs.String(), said) {
		t.Errorf("%s", v.logs)
	}
}

func TestAKeyFileThatOthersCouldReadIsTold(t *testing.T) {
	t.Parallel()
	v := openVault(t, nil)
	v.check(os.Chmod(v.path, 0o644))
	v.restart(nil)
	if info, err := os.Stat(v.path); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(v.logs.String(), "others could read the key file") {
		t.Errorf("%v %v %s", info.Mode(), err, v.logs)
	}
	v.check(os.WriteFile(v.path, []byte("garbage"), 0o600))
	wantKind(t, "a damaged file", v.reopen(v.with(nil)), freshet.Unavailable)
	if raw, _ := os.ReadFile(v.path); string(raw) != "garbage" {
		t.Error("a damaged file was replaced")
	}
}

func TestAReaderOfASharedDatabaseOpensWhatWasSealedBefore(t *testing.T) {
	t.Parallel()
	shared := func(o *Options) { o.KeyFile, o.Shared = "", true }
	v := openVault(t, shared)
	v.restart(func(o *Options) { shared(o); o.TokenSecret, o.Writer = []byte("given"), refusing{} })
	if !v.opens() {
		t.Error("it opens nothing")
	}
	v.restart(func(o *Options) { shared(o); o.Writer = refusing{} })
	if !v.opens() || !v.signedIn() {
		t.Error("without token.secret it does not use the one in the database")
	}
}

// refusing writes nothing for anybody.
type refusing struct{}

func (refusing) Provision(context.Context, Provision) error { return errors.ErrUnsupported }
func (refusing) MakeBuiltInApp(context.Context) error       { return errors.ErrUnsupported }
func (refusing) Retire(context.Context, string) error       { return errors.ErrUnsupported }
