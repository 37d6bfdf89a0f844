package manage

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

// account signs somebody up from the address and forgets the token.
func (s *server) account(remote string) (c *client, email string) {
	s.t.Helper()
	c = s.stranger()
	c.remote = remote
	email = fmt.Sprintf("ada-%s@example.com", remote[:len(remote)-len(":1")])
	c.id = c.call("POST", "/users", userBody(email, nil)).want(201).text("id")
	return c, email
}

func TestAGuesserKeepsNobodyFromSigningInElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, email := s.account("192.0.2.1:1")
	owner, guesser := s.stranger(), s.stranger()
	owner.remote, guesser.remote = "192.0.2.77:1", "198.51.100.1:1" // an address that nobody signed in from before
	guesses := 0
	for second := range 120 {
		for range 9 {
			if guesser.signIn(email, "wrong password").status == 401 {
				guesses++
			}
		}
		if second >= 60 {
			owner.signIn(email, password).want(200)
		}
		s.now.advance(time.Second)
	}
	if guesses > 12 {
		t.Errorf("%d guesses in two minutes, though each success of the owner's is none of the guesser's", guesses)
	}
}

func TestGuessingAPasswordIsSlowedPerAccount(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		s := serve(t)
		email := "nobody@example.com"
		if known {
			_, email = s.account("192.0.2.1:1")
		}
		guesser := s.stranger()
		guesser.remote = "198.51.100.1:1"
		for range 5 {
			guesser.signIn(email, "wrong password").want(401)
		}
		a := guesser.signIn(strings.ToUpper(email), password).want(429)
		if got := a.header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After %q", got)
		}
		guesser.signIn("another@example.com", "wrong password").want(401)
		s.now.advance(time.Second)
		if known {
			guesser.signIn(email, password).want(200)
			guesser.signIn(email, "wrong password").want(401)
			guesser.signIn(email, password).want(429) // a success is no fresh start
			s.now.advance(2 * time.Second)
			guesser.signIn(email, password).want(200)
		} else {
			guesser.signIn(email, password).want(401)
			if got := guesser.signIn(email, password).want(429).header.Get("Retry-After"); got != "2" {
				t.Errorf("Retry-After %q after one more", got)
			}
		}
	}
}

func TestGuessingPasswordsIsSlowedPerAddress(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	email := c.call("GET", "/users/"+c.id, nil).text("email")
	guesser := s.stranger()
	guesser.remote = "[2001:db8::1]:1"
	for i := range 30 {
		guesser.remote = "[2001:db8::" + string(rune('1'+i%9)) + "]:1" // one /64 is one address
		guesser.signIn(freshet.NewID()+"@example.com", "wrong password").want(401)
	}
	guesser.signIn(email, password).want(429)
	other := s.stranger()
	other.remote = "[2001:db8:1::1]:1"
	other.signIn(email, password).want(200)
	s.now.advance(time.Second)
	guesser.signIn(email, password).want(200)
	guesser.signIn(email, password).want(200) // a success makes nobody wait
	guesser.signIn(email, "wrong password").want(401)
	guesser.signIn(email, password).want(429) // but does not wash the address
}

// crowd lets every one of many addresses guess once.
func (s *server) crowd(email string, from, to int) (guesses int) {
	s.t.Helper()
	guesser := s.stranger()
	for i := from; i < to; i++ {
		guesser.remote = fmt.Sprintf("[2001:db8:%x::1]:1", i)
		if guesser.signIn(email, "wrong password").status == 401 {
			guesses++
		}
	}
	return guesses
}

func TestACrowdOfGuessersIsSlowedAndKeepsOutNobodyWhoWasThereBefore(t *testing.T) {
	t.Parallel()
	s := serve(t)
	home, email := s.account("192.0.2.1:1") // signing up from there is knowing it
	office, elsewhere := s.stranger(), s.stranger()
	office.remote, elsewhere.remote = "[2001:db8:ffff::1]:1", "192.0.2.200:1"
	office.signIn(email, password).want(200)
	if guesses := s.crowd(email, 0, 100); guesses != 50 {
		t.Errorf("%d guesses of a hundred addresses were free", guesses)
	}
	elsewhere.signIn(email, password).want(429)
	for range 3 {
		home.signIn(email, password).want(200)
	}
	office.remote = "[2001:db8:ffff::2]:1" // the same /64
	office.signIn(email, password).want(200)
	if s.crowd(email, 100, 110) != 0 {
		t.Error("successes of the owner gave the others more guesses")
	}
	home.signIn(email, "mistyped").want(401)
	home.signIn(email, password).want(200)

	s.restart() // the failures are forgotten, the networks are not
	s.crowd(email, 200, 300)
	home.signIn(email, password).want(200)
	elsewhere.signIn(email, password).want(429)
	s.now.advance(181 * 24 * time.Hour)
	s.crowd(email, 300, 400)
	office.signIn(email, password).want(429)
}

func TestOnesOwnPasswordAndEMailNeedTheCurrentPassword(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c, admin := s.signUp(), s.admin()
	own := "/users/" + c.id
	email := c.call("GET", own, nil).want(200).text("email")
	for _, change := range []map[string]any{
		{"password": "another password"}, {"email": "other@example.com"},
		{"password": "another password", "current_password": ""}, {"email": "other@example.com", "current_password": nil},
		{"password": "short", "email": "other@example.com"}, {"email": strings.ToUpper(email)},
	} {
		faults := c.call("PATCH", own, change).want(400).faults()
		if faults["current_password"] == "" || (change["password"] == "short") != (faults["password"] != "") {
			t.Errorf("%v: %v", change, faults)
		}
	}
	if faults := c.call("PATCH", own, map[string]any{"password": "short", "current_password": password}).want(400).faults(); len(faults) != 1 || faults["password"] == "" {
		t.Errorf("a short one: %v", faults)
	}
	for _, wrong := range []string{"wrong password", strings.Repeat("x", 1000)} {
		a := c.call("PATCH", own, map[string]any{"password": "another password", "current_password": wrong}).want(403)
		if faults := a.faults(); faults["current_password"] != "is wrong" {
			t.Errorf("%v", faults)
		}
	}
	c.call("PATCH", own, map[string]any{"first_name": "Grace", "email": email}).want(200)
	c.call("PATCH", own, map[string]any{"first_name": "Grace", "current_password": "whatever"}).want(200)
	c.signIn(email, password).want(200)
	c.call("PATCH", own, map[string]any{"email": "new@example.com", "current_password": password}).want(200)
	c.call("PATCH", own, map[string]any{"password": "another password", "current_password": password}).want(200)
	c.signIn("new@example.com", "another password").want(200)

	admin.call("PATCH", own, map[string]any{"password": password, "email": email}).want(200)
	c.signIn(email, password).want(200)
	admin.call("PATCH", "/users/"+admin.id, map[string]any{"password": "another password"}).want(400)
	admin.call("PATCH", "/users/"+admin.id, map[string]any{"password": "another password", "current_password": freshet.FixedAdminPassword}).want(200)
}

func TestATokenIsNoWayToGuessThePassword(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	email := c.call("GET", "/users/"+c.id, nil).want(200).text("email")
	thief := *c
	thief.remote = "198.51.100.1:1"
	for range 5 {
		thief.call("PATCH", "/users/"+c.id, map[string]any{"password": "another password", "current_password": "wrong password"}).want(403)
	}
	a := thief.call("PATCH", "/users/"+c.id, map[string]any{"password": "another password", "current_password": password}).want(429)
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	thief.signIn(email, password).want(429)
	c.signIn(email, password).want(200)
}

func TestAnAccountThatAnAdminMadeIsNotKnownToTheAdminsNetwork(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	admin.remote = "192.0.2.9:1"
	admin.call("POST", "/users", userBody("bob@example.com", nil)).want(201)
	s.crowd("bob@example.com", 0, 60)
	admin.signIn("bob@example.com", password).want(429)
}

// TestManyMaySignInToOneAccountAtOnce: programs that share an account, or people behind one address, are no guessers. Tries under way count
// as failed until they are known not to be, so that guessing in parallel brings nothing; who is right waits for those.
func TestManyMaySignInToOneAccountAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	email := c.call("GET", "/users/"+c.id, nil).want(200).text("email")
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if got := s.stranger().signIn(email, password); got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	all.Wait()
	if lines := s.failedSignIns(); len(lines) > 0 {
		t.Errorf("nobody failed: %s", lines)
	}
}
