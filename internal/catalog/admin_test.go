package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/store"
)

// signsIn reports whether the e-mail and the password open a session.
func (w *world) signsIn(email, password string) bool {
	w.t.Helper()
	_, err := w.SignIn(w.t.Context(), email, password, freshet.NewID())
	if err != nil && freshet.KindOf(err) != freshet.Unauthenticated {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) wantAdmins(emails ...string) {
	w.t.Helper()
	admins, err := w.store.Admins(w.t.Context())
	w.check(err)
	var got []string
	for _, a := range admins {
		got = append(got, a.Email)
	}
	if strings.Join(got, " ") != strings.Join(emails, " ") {
		w.t.Errorf("admins %v, want %v", got, emails)
	}
}

func with(email string, password freshet.Secret) func(*Options) {
	return func(o *Options) { o.AdminEmail, o.AdminPassword = email, password }
}

func TestTheFirstStartCreatesTheAdminAndLaterOnesLeaveItAlone(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	w.wantAdmins(freshet.FixedAdminEmail)
	if !w.signsIn("Admin@Freshet.local", freshet.FixedAdminPassword) {
		t.Error("the fixed admin cannot sign in")
	}
	before := w.admin().User
	w.check(w.reopen(nil))
	w.wantAdmins(freshet.FixedAdminEmail)
	if after := w.admin().User; after != before {
		t.Errorf("the second start changed %+v to %+v", before, after)
	}
}

func TestSettingsReplaceWhatIsStillFixed(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	w.check(w.reopen(with("Root@example.com", "a password of mine")))
	w.wantAdmins("Root@example.com")
	if !w.signsIn("root@example.com", "a password of mine") || w.signsIn("root@example.com", freshet.FixedAdminPassword) {
		t.Error("the settings did not replace the fixed password")
	}
	// What somebody chose is not replaced, and going back is not possible either.
	w.check(w.reopen(with("other@example.com", "another password")))
	w.wantAdmins("Root@example.com")
	w.check(w.reopen(nil))
	w.wantAdmins("Root@example.com")
	if !w.signsIn("root@example.com", "a password of mine") {
		t.Error("a later setting replaced what was chosen")
	}
}

func TestTheFirstStartTakesTheSettings(t *testing.T) {
	t.Parallel()
	w := openWorld(t, with("root@example.com", "a password of mine"))
	w.wantAdmins("root@example.com")
	if !w.signsIn("root@example.com", "a password of mine") {
		t.Error("the admin cannot sign in")
	}
}

func TestProductionRefusesTheFixedPassword(t *testing.T) {
	t.Parallel()
	production := func(o *Options) { o.Production = true }
	s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: s}
	t.Cleanup(func() { _ = s.Close() })
	err = w.reopen(production)
	wantKind(t, "at the first start", err, freshet.Invalid)
	if err != nil && !strings.Contains(err.Error(), "FRESHET_ADMIN_PASSWORD") {
		t.Errorf("no hint in %v", err)
	}
	if admins, err := s.Admins(t.Context()); err != nil || len(admins) > 0 {
		t.Errorf("a refused start left %v, %v", admins, err)
	}

	later := openWorld(t, nil)
	wantKind(t, "at a later start", later.reopen(production), freshet.Invalid)
	wantKind(t, "with another e-mail", later.reopen(func(o *Options) { o.Production, o.AdminEmail = true, "root@example.com" }), freshet.Invalid)
	later.wantAdmins(freshet.FixedAdminEmail)
	later.check(later.reopen(func(o *Options) { o.Production, o.AdminPassword = true, "a password of mine" }))
	later.check(later.reopen(production)) // it is replaced for good
}

func TestAnAdminEMailOfSomebodyElseIsRefused(t *testing.T) {
	s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, store: s}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.CreateUser(&store.Account{User: freshet.User{ID: freshet.NewID(), Email: freshet.FixedAdminEmail, Role: freshet.RoleUser, Status: freshet.StatusActive}})
	})
	w.check(err)
	wantKind(t, "start", w.reopen(nil), freshet.Invalid)
}

func TestBadSettingsForTheAdminAreNamed(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"email": with("nobody", "a password of mine"), "password": with("root@example.com", "short"),
	} {
		s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, store: s}
		err = w.reopen(change)
		wantKind(t, name, err, freshet.Invalid)
		if err != nil && (!strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "short")) {
			t.Errorf("%v", err)
		}
		_ = s.Close()
	}
}

func TestAnotherNodeThatWasFasterIsNoFault(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	w.check(w.createAdmin(t.Context())) // as if this node had looked before the other one created it
	w.wantAdmins(freshet.FixedAdminEmail)
}

func TestOnlyAnAdminAdministers(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	_, err := w.Users(t.Context(), ada.actor, "", Page{Limit: 1})
	wantKind(t, "users", err, freshet.NotFound)
	_, err = w.Audit(t.Context(), ada.actor, Page{Limit: 1})
	wantKind(t, "audit", err, freshet.NotFound)
	_, err = w.UpdateAccount(t.Context(), ada.actor, ada.actor.User.ID, AccountChange{})
	wantKind(t, "account", err, freshet.NotFound)
}

// mute is a grid whose notices get lost.
type mute struct{ *memory.Grid }

func (mute) Notify(context.Context, grid.Notice) error { return errors.New("away") }

func TestANodeKnowsOfItsOwnChangesWhenNoticesAreLost(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	w.notifier = mute{w.grid}
	w.check(w.publishWith(ada.topic.ID, ada.app.PublisherKey))
	w.renew(ada, freshet.PublisherKey, 0)
	wantKind(t, "renewed here", w.publishWith(ada.topic.ID, ada.app.PublisherKey), freshet.RevokedCredential)
}

func TestANodeLearnsFromNoticesOfOthers(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	other, err := New(t.Context(), w.store, w.grid, w.options())
	w.check(err)
	t.Cleanup(other.Close)
	key := ada.app.PublisherKey.Reveal()
	_, err = other.MayPublish(t.Context(), ada.topic.ID, key)
	w.check(err)
	w.renew(ada, freshet.PublisherKey, 0)
	_, err = other.MayPublish(t.Context(), ada.topic.ID, key)
	wantKind(t, "on the other node", err, freshet.RevokedCredential)
	w.check(w.DeleteTopic(t.Context(), ada.actor, TopicRef{ID: ada.topic.ID}))
	_, err = other.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID})
	wantKind(t, "on the other node", err, freshet.TopicNotFound)
}
