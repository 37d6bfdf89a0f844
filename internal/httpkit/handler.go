// Package httpkit is what the HTTP roles share: handlers that return errors, the one table from error kinds to
// statuses, JSON bodies, compression, cross-origin rules and rate-limit headers.
//
// It deliberately knows no route and no rule of the service. Everything here is safe for concurrent use.
package httpkit

import (
	"log/slog"
	"net/http"
)

// Handler answers a request or returns why it cannot. Nobody else writes a 4xx or 5xx.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Serve turns handlers into http.Handlers that answer errors in one place.
func Serve(log *slog.Logger, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			WriteError(w, r, log, err)
		}
	})
}
