package manage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/catalog"
)

func TestOneAddressMakesSoManyAccountsInAnHour(t *testing.T) {
	t.Parallel()
	s := serve(t, setting{catalog: func(o *catalog.Options) { o.SignUpsPerAddress = 3 }})
	admin := s.admin()
	c := s.stranger()
	n := 0
	signUp := func(c *client) *response {
		n++
		return c.call("POST", "/users", userBody(fmt.Sprintf("u%d@example.com", n), nil))
	}
	c.call("POST", "/users", userBody("bad", nil)).want(400) // makes no account, and takes no time
	for i := range 3 {
		c.remote = fmt.Sprintf("[2001:db8::%d]:1", i+1) // one /64 is one address
		signUp(c).want(201)
	}
	a := signUp(c).want(429)
	if wait := a.header.Get("Retry-After"); wait == "" || wait == "0" || !strings.Contains(a.text("message"), "3 accounts") {
		t.Errorf("Retry-After %q, %s", wait, a.body)
	}
	user := s.stranger()
	user.remote = c.remote
	user.token = user.signIn("u1@example.com", password).want(200).text("token")
	signUp(user).want(429) // nor does a token of one's own help
	admin.remote = c.remote
	signUp(admin).want(201)
	other := s.stranger()
	other.remote = "[2001:db8:1::1]:1"
	signUp(other).want(201)
	s.now.advance(time.Hour)
	signUp(c).want(201)
}

func TestSignUpsAreNotCountedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for range 30 {
		s.signUp()
	}
}
