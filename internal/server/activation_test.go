package server

import (
	"bytes"
	"crypto/ed25519"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

func TestAKeyThatEndsSoonIsWarnedOfAtEveryStart(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for lasts, want := range map[time.Duration]string{20 * 24 * time.Hour: "expires soon", 40 * 24 * time.Hour: "msg=activated"} {
		a := freshet.Activation{Holder: "Ada", Edition: "team", NotBefore: now.Unix(), Expires: now.Add(lasts).Unix()}
		key, err := a.Sign(private)
		if err != nil {
			t.Fatal(err)
		}
		s := settings.Default()
		s.Activation.Key, s.Activation.PublicKey = key, freshet.FormatActivationIssuer(public)
		var said bytes.Buffer
		edition, err := activate(&s, now, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil || edition.Name != "team" || !strings.Contains(said.String(), want) {
			t.Errorf("%s left: %+v, %v, %s", lasts, edition, err, said.String())
		}
	}
}
