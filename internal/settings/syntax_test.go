package settings

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// refused stands for a value that must not be accepted.
const refused = "refused"

func checkSyntax[T any](t *testing.T, name string, s syntax[T], cases map[string]string) {
	t.Helper()
	for given, want := range cases {
		v, err := s.parse(given)
		got := refused
		if err == nil {
			got = s.format(v)
		}
		if got != want {
			t.Errorf("%s %q became %q (%v), want %q", name, given, got, err, want)
		}
	}
}

func TestValuesAreWrittenOneWay(t *testing.T) {
	checkSyntax(t, "duration", duration(0, 48*time.Hour), map[string]string{
		"500ms": "500ms", "30s": "30s", "24h": "24h", "1h30m": "1h30m", "90s": "1m30s", "0": "0s", "0s": "0s", "1m": "1m",
		"": refused, "10": refused, "-1s": refused, "49h": refused, "1d": refused, "soon": refused, "1e3s": refused,
	})
	checkSyntax(t, "size", size(0, 4*GiB), map[string]string{
		"4MiB": "4MiB", "512KiB": "512KiB", "1024KiB": "1MiB", "1500B": "1500B", "2 MiB": "2MiB", "0B": "0B", "4GiB": "4GiB",
		"": refused, "4": refused, "4MB": refused, "4M": refused, "-1B": refused, "1.5MiB": refused, "5GiB": refused,
		"99999999999999GiB": refused, "+1B": refused,
	})
	checkSyntax(t, "count", count(100), map[string]string{
		"0": "0", "100": "100", "007": "7",
		"": refused, "101": refused, "-1": refused, "+1": refused, "1e2": refused, "0x10": refused, "1_0": refused, "٣": refused,
		"99999999999999999999": refused,
	})
	checkSyntax(t, "count or auto", autoCount(100), map[string]string{
		"auto": "auto", "0": "0", "100": "100", "": refused, "Auto": refused, "-1": refused, "101": refused,
	})
	checkSyntax(t, "boolean", boolean(), map[string]string{
		"true": "true", "false": "false", "yes": refused, "1": refused, "True": refused, "": refused,
	})
	checkSyntax(t, "address", listen(), map[string]string{
		":8000": ":8000", "127.0.0.1:0": "127.0.0.1:0", "[::1]:80": "[::1]:80", "localhost:1": "localhost:1", "[fe80::1%eth0]:1": "[fe80::1%eth0]:1",
		"8000": refused, "": refused, ":": refused, ":http": refused, ":65536": refused, "::1:80": refused, "http://x:80": refused,
		"a b:1": refused, ":-1": refused,
	})
	checkSyntax(t, "e-mail", email(), map[string]string{
		"a@example.com": "a@example.com", "": refused, "a": refused, "A <a@example.com>": refused,
	})
	checkSyntax(t, "networks", list(cidr(), true), map[string]string{
		"": "", "10.0.0.0/8": "10.0.0.0/8", "10.1.2.3/8, ::1": "10.0.0.0/8,::1/128", "192.0.2.1,192.0.2.1": "192.0.2.1/32",
		"10.0.0.0/33": refused, "example.com": refused,
	})
	checkSyntax(t, "roles", list(enum(Roles()...), false), map[string]string{
		"publish": "publish", "poll,publish,": "poll,publish", "": refused, ",": refused, "publisher": refused,
	})
	checkSyntax(t, "level", level(), map[string]string{"debug": "debug", "warn": "warn", "INFO": refused, "info+1": refused})
	checkSyntax(t, "database", hiddenText("", "", checkDatabase), map[string]string{
		"": "", "postgres://u:p@h/d": "postgres://u:p@h/d", "postgresql:///d?host=/run": "postgresql:///d?host=/run",
		"mysql://h/d": refused, "h/d": refused, "postgres://%zz": refused,
	})
	checkSyntax(t, "token secret", hiddenText("", "", checkTokenSecret), map[string]string{
		"": "", "0123456789abcdef0123456789abcdef": "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcde": refused,
	})
}

func TestSettingsHideTheirSecrets(t *testing.T) {
	s := Default()
	s.Database, s.Admin.Password, s.Token.Secret = "hunter2", "hunter2", "hunter2"
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s)} {
		if strings.Contains(shown, "hunter2") {
			t.Errorf("a secret shows: %s", shown)
		}
	}
}

func TestPasswordsInURLsAreHidden(t *testing.T) {
	for given, want := range map[string]string{
		"postgres://u:hunter2@h/d":            "postgres://u:xxxxx@h/d",
		"postgres://u@h/d":                    "postgres://u@h/d",
		"postgres://h/d?password=hunter2&a=b": "postgres://h/d?a=b&password=xxxxx",
		"postgres://u:hunt er2@%zz":           hidden,
		"nats://u:hunter2@a:1,nats://tok@b:2": "nats://u:xxxxx@a:1,nats://xxxxx@b:2",
		"embedded":                            "embedded",
	} {
		if got := redacted(given); got != want {
			t.Errorf("%s is shown as %s, want %s", given, got, want)
		}
	}
}

func TestNearestIsWhatWasMeant(t *testing.T) {
	for word, want := range map[string]string{
		"subscriber.lisen":  "subscriber.listen",
		"subscriber_listen": "subscriber.listen",
		"message_ttl":       "grid.message_ttl",
		"dtaa":              "data",
		"DATA":              "data",
		"environmnt":        "environment",
		"log.fromat":        "log.format",
		"banana":            "",
		"x":                 "",
		"":                  "",
	} {
		if got := Nearest(word, keys()); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestDistanceCountsTypingErrors(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"serve", "serve", 0}, {"sevre", "serve", 1}, {"serv", "serve", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestANetworkOfOneIsASingleAddress(t *testing.T) {
	p, err := cidr().parse("192.0.2.1")
	if err != nil || p != netip.MustParsePrefix("192.0.2.1/32") {
		t.Errorf("got %v, %v", p, err)
	}
}
