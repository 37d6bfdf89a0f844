package server

import (
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

func TestOnlyWhatListensIsLogged(t *testing.T) {
	const msg = "embedded NATS server runs"
	r := run(t, func(s *settings.Settings) { s.NATS = freshet.Secret(settings.EmbeddedNATS) })
	if line := r.await(msg); line["clients"] != nil || line["peers"] != nil {
		t.Errorf("nothing listens: %v", line)
	}
	r = run(t, func(s *settings.Settings) {
		s.NATS, s.NATSListen = freshet.Secret(settings.EmbeddedNATS), "127.0.0.1:0"
	})
	if line := r.await(msg); line["clients"] == nil || line["peers"] != nil {
		t.Errorf("clients of other processes can connect: %v", line)
	}
}
