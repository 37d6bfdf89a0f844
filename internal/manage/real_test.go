package manage

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/freshet-io/freshet/internal/kong"
	"github.com/freshet-io/freshet/internal/registry"
)

type realGateway struct{ http.Handler }

func administrationOf(_ *testing.T, s *server) http.Handler {
	log := slog.New(slog.DiscardHandler)
	return kong.New(kong.Options{Registry: registry.New(s.store, s.grid, registry.Options{Log: log}), Version: "test", Log: log})
}
