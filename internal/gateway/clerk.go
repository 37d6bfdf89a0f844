package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/plain"
)

// clerk answers plain requests for registered APIs where they are read, if their upstreams answer shortly and simply. It asks
// the same plugins and the same upstreams, in the same way, as the library's handler, to which it leaves what has another answer,
// together with all that was done for it.
type clerk struct {
	gateway *Gateway
	conn    *httpkit.DeskConn

	// Of the request under way; there for the next one too.
	head plain.Head
	like *http.Request // what all of them have in common
	r    *http.Request
	url  url.URL
}

// answers are buffers for answers. A connection that waits has none.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// Clerk makes a clerk for a connection of the gateway's listener.
func (g *Gateway) Clerk(c *httpkit.DeskConn) httpkit.Clerk { return &clerk{gateway: g, conn: c} }

// maxClerkHead is as long as the head of a request may be, in bytes, to be looked at twice.
const maxClerkHead = 8 << 10

// Take implements httpkit.Clerk.
func (k *clerk) Take(read []byte) (turn httpkit.Turn, err error) {
	if len(read) > maxClerkHead || !k.head.Read(string(read)) {
		return httpkit.Declined, nil
	}
	client := k.conn.Client()
	defer client.Done()
	g := k.gateway
	if client == nil || !k.fill() || g.outdated.waiting() != nil || g.log.Enabled(k.conn.Context(), slog.LevelDebug) {
		return httpkit.Lent, nil
	}
	r, t := g.believe(k.r), g.table.Load()
	path := sentPath(r.URL)
	to := t.find(r, path)
	if to == nil || !to.isProxied {
		return httpkit.Lent, nil
	}
	u, ok := to.next.(*upstream)
	if !ok || u.scheme != "http" || !isPlain(r) {
		return httpkit.Lent, nil
	}
	g.traffic.begun.Add(1)
	b := &begun{to: u}
	defer k.recover(b, &turn)
	if b.header, b.answer = t.judge(r, to, path); b.answer == nil {
		b.conn, b.err = g.straight.ask(r, u, client)
	}
	out := answers.Get().(*[]byte)
	defer answers.Put(out)
	if *out, ok = k.appendShort((*out)[:0], b); ok {
		defer g.traffic.answered.Add(1)
		return httpkit.Taken, k.conn.Answer(*out)
	}
	if k.conn.IsLast() {
		defer g.traffic.answered.Add(1)
		return httpkit.Taken, k.finish(b, r)
	}
	k.leave(b)
	return httpkit.Lent, nil
}

// fill makes the request for plugins and upstreams, and reports whether it would be the same if the library had read it.
func (k *clerk) fill() bool {
	isLast := slices.ContainsFunc(k.head.Values("Connection"), func(v string) bool { return strings.EqualFold(v, "close") })
	if isLast || !plain.IsHost(k.head.Host) || k.head.Fields() > httpkit.MaxHeaderFields || len(k.head.Values("Pragma")) > 0 {
		return false
	}
	if k.r == nil {
		like := http.Request{URL: &k.url, Header: http.Header{}, RemoteAddr: k.conn.RemoteAddr().String()}
		k.like, k.r = like.WithContext(k.conn.Context()), new(http.Request)
	}
	*k.r = *k.like
	return k.head.Fill(k.r)
}

// appendShort writes a short answer if one is there, and is done with its connection then.
func (k *clerk) appendShort(out []byte, b *begun) ([]byte, bool) {
	if b.conn == nil {
		return out, false
	}
	var room [maxShortFields]shortField
	s, ok := b.conn.peekShort(&room)
	if !ok {
		return out, false
	}
	out = appendHeader(out, s, b.header, k.conn.IsLast())
	all, _ := b.conn.in.Peek(s.headLen + s.length)
	out = append(out, all[s.headLen:]...)
	_, _ = b.conn.in.Discard(len(all))
	b.conn.done(true)
	b.conn = nil
	return out, true
}

// appendHeader writes the header of an answer, with our own fields in place of the upstream's.
func appendHeader(b []byte, s short, own []mark, isLast bool) []byte {
	b = appendStatus(b, s.status)
	dated := false
	for _, f := range s.fields {
		dated = dated || f.name == "Date"
		if !isReplaced(f.name, own) {
			b = appendField(b, f.name, []string{f.value})
		}
	}
	for _, m := range own {
		b = appendField(b, m.name, m.values)
	}
	if !dated {
		b = time.Now().UTC().AppendFormat(append(b, "Date: "...), http.TimeFormat)
		b = append(b, "\r\n"...)
	}
	if isLast {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

func appendStatus(b []byte, status int) []byte {
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
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

// leave leaves a request to the library's handler.
func (k *clerk) leave(b *begun) {
	k.gateway.traffic.begun.Add(-1) // it will be counted there
	if b.conn != nil && !b.conn.letGo() {
		b.conn.done(false)
		b.conn, b.err = nil, context.Canceled // the client has gone
	}
	k.conn.Leave(b)
}

// finish answers in the library's place, which shuts down and reads no more requests.
func (k *clerk) finish(b *begun, r *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the answer broke off: %v", v)
		}
	}()
	w := &lastAnswer{conn: k.conn, header: http.Header{}}
	b.ServeHTTP(w, r)
	return cmp.Or(w.err, io.EOF)
}

// recover has a request begun anew that ended in a panic. If that was no accident, the library's handler says so.
func (k *clerk) recover(b *begun, turn *httpkit.Turn) {
	v := recover()
	if v == nil {
		return
	}
	k.gateway.log.Error("handler panicked", "method", k.r.Method, "path", httpkit.SafePath(k.r.URL.Path), "panic", v, "stack", string(debug.Stack()))
	_ = b.Close()
	k.gateway.traffic.begun.Add(-1)
	*turn = httpkit.Lent
}
