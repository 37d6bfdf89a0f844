package manage

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

// failedSignIns are the log lines about them.
func (s *server) failedSignIns() (lines []string) {
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "sign-in failed") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestFailedSignInsAreInTheLog(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	email := c.call("GET", "/users/"+c.id, nil).want(200).text("email")
	disabled := s.signUp()
	disabledEmail := disabled.call("GET", "/users/"+disabled.id, nil).want(200).text("email")
	s.admin().call("PATCH", "/admin/users/"+disabled.id, map[string]any{"status": "disabled"}).want(200)

	guesser := s.stranger()
	guesser.remote = "198.51.100.1:1"
	try := func(email, password string, status int, want ...string) {
		t.Helper()
		before := len(s.failedSignIns())
		guesser.signIn(email, password).want(status)
		lines := s.failedSignIns()
		if len(lines) != before+1 {
			t.Fatalf("%d lines more", len(lines)-before)
		}
		for _, part := range append(want, "level=WARN", "address=198.51.100.1") {
			if !strings.Contains(lines[before], part) {
				t.Errorf("%q is not in %s", part, lines[before])
			}
		}
		for _, secret := range []string{"hunter2", email, "@"} {
			if strings.Contains(lines[before], secret) {
				t.Errorf("%q is in %s", secret, lines[before])
			}
		}
	}
	try(email, "hunter2hunter2", 401, "account="+c.id, `reason="wrong password"`)
	try("Nobody@example.com", "hunter2hunter2", 401, "account=email:", `reason="unknown account"`)
	try("nobody@example.com", "hunter2hunter2", 401, "account=email:", `reason="unknown account"`)
	if lines := s.failedSignIns(); accountIn(lines[1]) != accountIn(lines[2]) || accountIn(lines[1]) == accountIn(lines[0]) {
		t.Errorf("one e-mail has two names, or two have one: %v", lines)
	}
	try(disabledEmail, password, 401, "account="+disabled.id, `reason="account disabled"`)
	try(email, strings.Repeat("hunter2", 100), 401, "account="+c.id, `reason="wrong password"`)
	s.now.advance(time.Minute)
	for range 3 {
		try(email, "hunter2hunter2", 401)
	}
	try(email, password, 429, "account="+c.id, `reason="too many attempts"`)

	c.call("PATCH", "/users/"+c.id, map[string]any{"password": "another password", "current_password": "hunter2hunter2"}).want(403)
	lines := s.failedSignIns()
	if last := lines[len(lines)-1]; !strings.Contains(last, "account="+c.id) || !strings.Contains(last, "address=192.0.2.1") {
		t.Errorf("the current password was guessed: %s", last)
	}
}

func accountIn(line string) string {
	_, after, _ := strings.Cut(line, "account=")
	name, _, _ := strings.Cut(after, " ")
	return name
}

// TestAFloodOfFailedSignInsIsANumberInTheLog: how many lines there are depends on how fast it comes. None is missing in the sum.
func TestAFloodOfFailedSignInsIsANumberInTheLog(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.stranger()
	const flood = 300
	for i := range flood {
		c.remote = fmt.Sprintf("198.51.%d.%d:1", i/200, i%200)
		c.signIn(freshet.NewID()+"@example.com", "wrong password").want(401)
	}
	s.catalog.Close()
	told := len(s.failedSignIns())
	for line := range strings.Lines(s.log.String()) {
		if _, count, found := strings.Cut(line, `about="failed sign-ins" count=`); found {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			if err != nil {
				t.Fatal(err)
			}
			told += n
		}
	}
	if told != flood {
		t.Errorf("the log tells of %d failed sign-ins, there were %d", told, flood)
	}
}
