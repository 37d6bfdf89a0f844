package gateway

import (
	"context"
	"log/slog"
	"strings"
)

// Door is the way of plain requests to one of the platform's own APIs. Who uses it answers them where they come in; they pass nothing
// that every other request passes, and so they are only let in while there is nothing to pass.
type Door struct {
	gateway *Gateway
	mounts  []string
}

// Door returns the door of one of the platform's own APIs.
func (g *Gateway) Door(name, version string) *Door {
	return &Door{g, platformPaths(name, version)}
}

// Enter reports whether a request for the path would reach the API as it is, with no plugin before it and nobody who writes it
// down, and which path the API would see. If so, Leave must be called when it is answered.
func (d *Door) Enter(path string) (inside string, ok bool) {
	g := d.gateway
	mount := twoSegments(path)
	for _, m := range d.mounts {
		ok = ok || m == mount
	}
	if !ok || g.outdated.waiting() != nil || g.log.Enabled(context.Background(), slog.LevelDebug) {
		return "", false
	}
	if to := g.table.Load().platform[mount]; to == nil || to.isProxied || len(to.plugins) > 0 {
		return "", false
	}
	g.traffic.begun.Add(1)
	return strings.TrimPrefix(path, mount), true
}

// Leave counts the answer.
func (d *Door) Leave() { d.gateway.traffic.answered.Add(1) }
