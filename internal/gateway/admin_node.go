package gateway

import (
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/store"
)

// node tells what runs here.
func (a *Administration) node(*call) (reply, error) {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return shown(map[string]any{
		"tagline":  "Welcome to Freshet",
		"version":  a.version,
		"hostname": host,
		"plugins":  map[string]any{"available_on_server": kindNames(), "enabled_in_cluster": a.registry.inUse()},
	})
}

// statusBody says how busy the node is and how much is registered. The dialect has the server's figures at the top; its
// later versions put them below a name, where newer scripts look.
type statusBody struct {
	serverStatus
	Server   serverStatus   `json:"server"`
	Database databaseStatus `json:"database"`
}

// serverStatus has the fields that the dialect's monitoring reads. Every accepted connection is handled, and a request
// is counted as writing from its header on: nothing is left for reading.
type serverStatus struct {
	Accepted int64 `json:"connections_accepted"`
	Handled  int64 `json:"connections_handled"`
	Active   int64 `json:"connections_active"`
	Reading  int64 `json:"connections_reading"`
	Writing  int64 `json:"connections_writing"`
	Waiting  int64 `json:"connections_waiting"`
	Requests int64 `json:"total_requests"`
}

// databaseStatus is how many there are of each.
type databaseStatus struct {
	APIs      int64 `json:"apis"`
	Consumers int64 `json:"consumers"`
	Plugins   int64 `json:"plugins"`
	Keys      int64 `json:"keyauth_credentials"`
}

func (a *Administration) status(c *call) (reply, error) {
	busy := a.registry.traffic()
	body := statusBody{serverStatus: busy, Server: busy}
	one := store.Cursor{Limit: 1} // for the total
	apis, err := a.store.APIs(c.ctx, store.APIFilter{}, one)
	if err != nil {
		return reply{}, err
	}
	consumers, err := a.store.Consumers(c.ctx, store.ConsumerFilter{}, one)
	if err != nil {
		return reply{}, err
	}
	plugins, err := a.store.Plugins(c.ctx, store.PluginFilter{}, one)
	if err != nil {
		return reply{}, err
	}
	keys, err := a.store.Credentials(c.ctx, store.CredentialFilter{}, one)
	if err != nil {
		return reply{}, err
	}
	body.Database = databaseStatus{apis.Total, consumers.Total, plugins.Total, keys.Total}
	return shown(body)
}

// traffic counts what comes to the gateway's listener. It is safe for concurrent use.
type traffic struct {
	accepted, ended atomic.Int64 // connections
	begun, answered atomic.Int64 // requests
}

func (t *traffic) status() serverStatus {
	// What ends is read first, so that nothing seems to have ended before it began.
	answered, ended := t.answered.Load(), t.ended.Load()
	begun, accepted := t.begun.Load(), t.accepted.Load()
	s := serverStatus{Accepted: accepted, Handled: accepted, Active: accepted - ended, Writing: begun - answered, Requests: begun}
	s.Waiting = max(0, s.Active-s.Writing) // HTTP/2 has more requests than connections
	return s
}

func (r *Registry) traffic() serverStatus { return r.gateway.traffic.status() }

// ConnState is for the http.Server of the gateway's listener.
func (g *Gateway) ConnState(conn net.Conn, state http.ConnState) {
	httpkit.ConnState(conn, state)
	switch state {
	case http.StateNew:
		g.traffic.accepted.Add(1)
	case http.StateClosed, http.StateHijacked:
		g.traffic.ended.Add(1)
	}
}
