package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestAPasswordCostsWhatIsRecommended(t *testing.T) {
	p := newPasswords(Hashing{})
	hash, err := p.hash(t.Context(), "a", "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("%s, %v", hash, err)
	}
	if !strings.HasPrefix(p.decoy, "$argon2id$v=19$m=19456,t=2,p=1$") || len(p.decoy) != len(hash) {
		t.Errorf("the decoy %s is unlike %s", p.decoy, hash)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false} {
		if got, err := p.matches(t.Context(), "a", password, hash); err != nil || got != want {
			t.Errorf("%q matches: %v, %v", password, got, err)
		}
	}
	if got, err := p.matches(t.Context(), "a", "anything", ""); err != nil || got {
		t.Errorf("nobody's password matches: %v, %v", got, err)
	}
}

func TestAPasswordThatIsTooLongIsNeverHashed(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	for range w.passwords.semaphore.places { // whoever hashes now waits for ever
		_, err := w.passwords.semaphore.enter(t.Context(), "a")
		w.check(err)
	}
	_, err := w.SignIn(t.Context(), freshet.FixedAdminEmail, strings.Repeat("x", freshet.MaxPassword+1), "a")
	wantKind(t, "sign in", err, freshet.Unauthenticated)
	_, err = w.SignUp(t.Context(), nil, freshet.User{Email: "a@example.com", FirstName: "a", LastName: "b", Language: "fr_FR"}, strings.Repeat("x", freshet.MaxPassword+1), "a")
	wantKind(t, "sign up", err, freshet.Invalid)
	admin := w.admin()
	_, err = w.UpdateUser(t.Context(), admin, admin.User.ID, UserChange{Password: new(strings.Repeat("x", freshet.MaxPassword+1))})
	wantKind(t, "change", err, freshet.Invalid)
}

func TestTheTokenSecretIsMadeOnceAndCanBeGiven(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	first := string(w.secret)
	if len(first) != 32 {
		t.Errorf("%d bytes", len(first))
	}
	w.check(w.reopen(nil))
	if string(w.secret) != first {
		t.Error("another secret after a restart")
	}
	w.check(w.reopen(func(o *Options) { o.TokenSecret = []byte("given") }))
	if string(w.secret) != "given" {
		t.Error("the given secret is not used")
	}
}

func FuzzAuthenticate(f *testing.F) {
	for _, seed := range []string{"", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA", "...."} {
		f.Add(seed)
	}
	c := &Catalog{secret: []byte("0123456789abcdef0123456789abcdef"), now: time.Now}
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, err := c.parseToken(token); err == nil {
			t.Errorf("%q is a token", token)
		}
	})
}
