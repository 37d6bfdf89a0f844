package manage

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/freshet-io/freshet/internal/gateway"
)

type realGateway struct{ http.Handler }

func administrationOf(t *testing.T, s *server) http.Handler {
	g, err := gateway.New(gateway.Options{Log: slog.New(slog.DiscardHandler), Counter: s.grid})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	r, err := gateway.Follow(t.Context(), g, s.store, s.grid, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return gateway.NewAdministration(s.store, r, "test", slog.New(slog.DiscardHandler))
}
