package gateway

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
)

// plugin is one configured plugin of one API. It is safe for concurrent use.
type plugin interface {
	// access looks at a request before it is passed on, and may change its headers and query. It returns nil to let it
	// go on, or the answer.
	access(x *exchange) *answer
}

// maker makes a plugin run from a configuration that fits its schema.
type maker func(c registry.Config, g *Gateway) (plugin, error)

// makers has one for every kind of plugin that the registry knows.
var makers = map[string]maker{
	"cors":                  newCORS,
	"key-auth":              newKeyAuth,
	"ip-restriction":        newIPRestriction,
	"request-size-limiting": newRequestSize,
	"rate-limiting":         newRateLimiting,
}

// exchange is one request on its way through the plugins of its API. It belongs to the request's goroutine.
type exchange struct {
	r        *http.Request
	table    *table
	route    *route
	consumer *freshet.Consumer // nil until key-auth knows
	header   []mark            // of the answer, whoever gives it
	room     [4]mark           // where header begins
}

// mark is a header that the answer carries in place of what an upstream says.
type mark struct {
	name   string // as it is to be written: not every name we promise has Go's usual capitals
	values []string
}

func (x *exchange) set(name, value string) {
	x.header = append(x.header, mark{name, []string{value}})
}

// run asks each plugin in turn.
func (x *exchange) run() *answer {
	for i := range x.route.plugins {
		s := &x.route.plugins[i]
		p := s.general
		if x.consumer != nil && s.byConsumer != nil {
			if own := s.byConsumer[x.consumer.ID]; own != nil {
				p = own
			}
		}
		if p == nil {
			continue
		}
		if a := p.access(x); a != nil {
			return a
		}
	}
	return nil
}

// answer is what the gateway says itself. The dialect fixes statuses and texts.
type answer struct {
	status  int
	message string
	header  []mark
}

func (a *answer) write(w http.ResponseWriter) {
	for _, m := range a.header {
		w.Header()[m.name] = m.values
	}
	w.Header().Set("Cache-Control", "no-store")
	if a.message == "" {
		w.WriteHeader(a.status)
		return
	}
	httpkit.WriteJSON(w, a.status, httpkit.ErrorBody{Message: a.message})
}

// marked puts our headers on an answer at the last moment, over what the upstream says about the same. Any that were put
// there earlier would be lost if the upstream sent an interim answer first.
type marked struct {
	http.ResponseWriter
	header    []mark
	isProxied bool
	done      bool
}

func (m *marked) WriteHeader(status int) {
	if !m.done && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		m.done = true
		m.apply()
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *marked) apply() {
	h := m.Header()
	for _, own := range m.header {
		if own.name == "Vary" {
			continue // adds to what the upstream says
		}
		for name := range h {
			if strings.EqualFold(name, own.name) {
				delete(h, name)
			}
		}
	}
	for _, own := range m.header {
		if theirs := h[own.name]; len(theirs) > 0 {
			h[own.name] = append(theirs, own.values...)
		} else {
			h[own.name] = own.values[:len(own.values):len(own.values)] // may be shared, so nobody may append to it
		}
	}
	if _, typed := h["Content-Type"]; m.isProxied && !typed {
		h["Content-Type"] = nil // what an upstream leaves open is not ours to guess
	}
}

func (m *marked) Write(b []byte) (int, error) {
	if !m.done {
		m.WriteHeader(http.StatusOK)
	}
	return m.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (m *marked) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// Hijack is how an upgrade takes over: its header is written from what is there then.
func (m *marked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !m.done {
		m.done = true
		m.apply()
	}
	return http.NewResponseController(m.ResponseWriter).Hijack()
}

// Flush sends the header too, so it must be complete.
func (m *marked) Flush() {
	if !m.done {
		m.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(m.ResponseWriter).Flush() // a connection that cannot flush will say so at the next write
}

// unusable stands for a plugin that this node cannot configure: one that a newer version stored. It refuses everything,
// for it may have been there to protect the API.
type unusable struct{}

func (unusable) access(*exchange) *answer {
	return &answer{status: http.StatusServiceUnavailable, message: "This API has a plugin that this server does not know"}
}

// compile makes the plugins of one API.
func (g *Gateway) compile(all []*freshet.Plugin) []slot {
	var slots []slot
	for _, name := range registry.KindNames() {
		var s slot
		for _, p := range all {
			if p.Name != name || !p.Enabled {
				continue
			}
			s.add(p.ConsumerID, g.instance(p))
		}
		if s.general != nil || s.byConsumer != nil {
			slots = append(slots, s)
		}
	}
	if slices.ContainsFunc(all, func(p *freshet.Plugin) bool { return p.Enabled && makers[p.Name] == nil }) {
		slots = append([]slot{{general: unusable{}}}, slots...)
	}
	return slots
}

func (s *slot) add(consumerID string, p plugin) {
	if consumerID == "" {
		s.general = p
		return
	}
	if s.byConsumer == nil {
		s.byConsumer = map[string]plugin{}
	}
	s.byConsumer[consumerID] = p
}

func (g *Gateway) instance(p *freshet.Plugin) plugin {
	var c registry.Config
	err := json.Unmarshal(p.Config, &c)
	if err == nil {
		var made plugin
		if made, err = makers[p.Name](c, g); err == nil {
			return made
		}
	}
	g.log.Error("plugin cannot be used; its API refuses requests", "plugin", p.ID, "name", p.Name, "err", err)
	return unusable{}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
