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
)

// plugin is one configured plugin of one API. It is safe for concurrent use.
type plugin interface {
	// access looks at a request before it is passed on, and may change its headers and query. It returns nil to let it
	// go on, or the answer.
	access(x *exchange) *answer
}

// kind is a plugin that can be attached. Each has a file of its own, which holds all of it.
type kind struct {
	name string
	// priority says when it runs on a request: the highest first, in the dialect's numbers. What limits or lists consumers
	// comes below key-auth, which finds out who they are.
	priority int
	schema   schema
	// configure makes a plugin from a configuration that fits the schema. It may be called for every request to the
	// administration, so it must not start anything.
	configure func(c config, g *Gateway) (plugin, error)
}

// kinds has every plugin, in the order in which they run.
var kinds []*kind

// attachable adds a plugin. It is for the variables of this package, which are there before anything reads kinds.
func attachable(k kind) *kind {
	kinds = append(kinds, &k)
	slices.SortFunc(kinds, func(a, b *kind) int { return b.priority - a.priority })
	return &k
}

func kindNamed(name string) *kind {
	if i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name }); i >= 0 {
		return kinds[i]
	}
	return nil
}

func kindNames() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
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
	for _, k := range kinds {
		var s slot
		for _, p := range all {
			if p.Name != k.name || !p.Enabled {
				continue
			}
			s.add(p.ConsumerID, g.instance(k, p))
		}
		if s.general != nil || s.byConsumer != nil {
			slots = append(slots, s)
		}
	}
	if slices.ContainsFunc(all, func(p *freshet.Plugin) bool { return p.Enabled && kindNamed(p.Name) == nil }) {
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

func (g *Gateway) instance(k *kind, p *freshet.Plugin) plugin {
	var c config
	err := json.Unmarshal(p.Config, &c)
	if err == nil {
		var made plugin
		if made, err = k.configure(c, g); err == nil {
			return made
		}
	}
	g.log.Error("plugin cannot be used; its API refuses requests", "plugin", p.ID, "name", p.Name, "err", err)
	return unusable{}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
