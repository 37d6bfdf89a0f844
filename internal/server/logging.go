package server

import (
	"io"
	"log/slog"

	"github.com/freshet-io/freshet/internal/settings"
)

// NewLogger writes lines to w in the format and from the level that the settings ask for.
func NewLogger(w io.Writer, s *settings.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.Log.Level, ReplaceAttr: readableDuration}
	if s.Log.Format == settings.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// readableDuration keeps durations as 30s in JSON too, where slog would write nanoseconds.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
