package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet/internal/settings"
)

// fixed is a listener that only has an address.
type fixed struct{ net.Listener }

func (fixed) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6zero, Port: 8000} }

func TestBannerShowsWhatToOpenNext(t *testing.T) {
	all := &ports{gateway: &port{Listener: fixed{}}, admin: &port{Listener: fixed{}}, subscriber: &port{Listener: fixed{}}}
	for name, c := range map[string]struct {
		ports  *ports
		change func(*settings.Settings)
		colour bool
	}{
		"development": {ports: all, colour: true},
		"own-password": {ports: all, change: func(s *settings.Settings) {
			s.Admin.Email, s.Admin.Password = "o'brien@example.com", "hunter2hunter2"
		}},
		"production": {ports: all, change: func(s *settings.Settings) {
			s.Environment, s.Admin.Password = settings.Production, "hunter2hunter2"
		}},
		"poll-only": {ports: &ports{admin: all.admin}, change: func(s *settings.Settings) { s.Roles = []settings.Role{settings.RolePoll} }},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			o := &Options{Settings: settings.Default(), Version: "1.2.3", Banner: &b, Colour: c.colour}
			if c.change != nil {
				c.change(&o.Settings)
			}
			printBanner(o, c.ports)
			if strings.Contains(b.String(), "hunter2") {
				t.Error("it shows a password that somebody chose")
			}
			checkGolden(t, filepath.Join("testdata", "banner-"+name+".txt"), b.String())
		})
	}
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want (-), got (+); -update rewrites %s:\n%s", path, diff)
	}
}
