package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/wire"
)

// FastPath answers requests without a body to registered APIs on plain HTTP, before net/http reads them. It asks the same table, the same plugins and
// the same upstreams in the same way as the gateway's handler, and takes nothing while every request is to be logged.
func (g *Gateway) FastPath() wire.Handler { return fastPath{g} }

type fastPath struct{ gateway *Gateway }

// ServeWire implements wire.Handler. Once a request may have been counted, it is answered here.
func (f fastPath) ServeWire(x *wire.Exchange) wire.Outcome {
	g := f.gateway
	if x.Length > 0 || !g.isCurrent(x.Context()) {
		return wire.Pass
	}
	r := x.HTTP()
	if r == nil || !canSend(r) {
		return wire.Pass
	}
	r = g.believe(r)
	t, path := g.table.Load(), sentPath(r.URL)
	to := t.find(r, path)
	if to == nil || !to.isProxied {
		return wire.Pass
	}
	u, ok := to.next.(*upstream)
	if !ok || u.scheme != "http" {
		return wire.Pass
	}
	g.traffic.begun.Add(1)
	defer g.traffic.answered.Add(1)
	defer func() {
		if v := recover(); v != nil {
			httpkit.AnswerPanic(x.Response(), r, g.log, v)
		}
	}()
	header, a := t.judge(r, to, path)
	if a != nil {
		g.refuse(&marked{ResponseWriter: x.Response(), isProxied: true, header: header}, r, a)
		return wire.Done
	}
	c, err := u.send(r, x)
	if err != nil || r.Method != http.MethodGet || !replyShort(x, c, header) {
		u.pass(&marked{ResponseWriter: x.Response(), isProxied: true, header: header}, r, c, err)
	}
	return wire.Done
}

// isCurrent reports whether requests need not wait for a newer table, nor be logged.
func (g *Gateway) isCurrent(ctx context.Context) bool {
	return g.outdated.waiting() == nil && !g.log.Enabled(ctx, slog.LevelDebug)
}

// replyShort passes a short response on, with our own header fields in place of the upstream's, and reports whether it was one.
func replyShort(x *wire.Exchange, c *wire.ClientConn, own []mark) bool {
	s := c.Short()
	if s == nil {
		return false
	}
	b := wire.AppendStatus(x.Buffer(), s.Status)
	for name, values := range x.Header() {
		if !s.Has(name) {
			b = wire.AppendFields(b, name, values)
		}
	}
	isDated := s.Has("Date")
	for i := range s.Fields {
		f := &s.Fields[i]
		if !isReplaced(f.Name, own) {
			b = wire.AppendField(b, f.Name, f.Value)
		}
	}
	for _, m := range own {
		b = wire.AppendFields(b, m.name, m.values)
	}
	if !isDated {
		b = wire.AppendDate(b)
	}
	if x.IsLast() {
		b = append(b, "Connection: close\r\n"...)
	}
	b = append(append(b, "\r\n"...), s.Body...)
	c.Done(true)
	x.Reply(b)
	return true
}

// isReplaced reports whether our own fields say what an upstream's would. Vary adds to it.
func isReplaced(name string, own []mark) bool {
	for _, m := range own {
		if m.name != "Vary" && strings.EqualFold(m.name, name) {
			return true
		}
	}
	return false
}

// Bypass is the way of requests to one of the platform's own APIs that answers them before net/http reads them. They meet nothing that
// every other request meets, and so they are let in only while there is nothing to meet.
type Bypass struct {
	gateway *Gateway
	mounts  []string
}

// Bypass returns the way to one of the platform's own APIs.
func (g *Gateway) Bypass(name, version string) *Bypass {
	return &Bypass{g, platformPaths(name, version)}
}

// Enter reports whether a request for the path would reach the API as it is, with no plugin before it and nobody who writes it
// down, and which path the API would see. If so, Leave must be called when it is answered.
func (b *Bypass) Enter(path string) (inside string, ok bool) {
	g := b.gateway
	mount := twoSegments(path)
	for _, m := range b.mounts {
		ok = ok || m == mount
	}
	if !ok || !g.isCurrent(context.Background()) {
		return "", false
	}
	if to := g.table.Load().platform[mount]; to == nil || to.isProxied || len(to.plugins) > 0 {
		return "", false
	}
	g.traffic.begun.Add(1)
	return strings.TrimPrefix(path, mount), true
}

// Leave counts the answer.
func (b *Bypass) Leave() { b.gateway.traffic.answered.Add(1) }
