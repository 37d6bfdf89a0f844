package kong

import (
	"os"

	"github.com/freshet-io/freshet/internal/registry"
)

// Node is the process that answers. The server knows it.
type Node interface {
	// Traffic is what comes to the gateway's listener.
	Traffic() Traffic

	// PluginsInUse names the plugins that any API has.
	PluginsInUse() []string
}

// Traffic has the figures that the dialect's monitoring reads. Every accepted connection is handled, and a request is counted as
// writing from its header on: nothing is left for reading.
type Traffic struct {
	Accepted int64 `json:"connections_accepted"`
	Handled  int64 `json:"connections_handled"`
	Active   int64 `json:"connections_active"`
	Reading  int64 `json:"connections_reading"`
	Writing  int64 `json:"connections_writing"`
	Waiting  int64 `json:"connections_waiting"`
	Requests int64 `json:"total_requests"`
}

// node tells what runs here.
func (h *Handler) node(*call) (response, error) {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return shown(map[string]any{
		"tagline":  "Welcome to Freshet",
		"version":  h.Version,
		"hostname": host,
		"plugins":  map[string]any{"available_on_server": registry.KindNames(), "enabled_in_cluster": h.Node.PluginsInUse()},
	})
}

// statusBody says how busy the node is and how much is registered. The dialect has the server's figures at the top; its
// later versions put them below a name, where newer scripts look.
type statusBody struct {
	Traffic
	Server   Traffic        `json:"server"`
	Database databaseStatus `json:"database"`
}

// databaseStatus is how many there are of each.
type databaseStatus struct {
	APIs      int64 `json:"apis"`
	Consumers int64 `json:"consumers"`
	Plugins   int64 `json:"plugins"`
	Keys      int64 `json:"keyauth_credentials"`
}

func (h *Handler) status(c *call) (response, error) {
	busy := h.Node.Traffic()
	totals, err := h.Registry.Totals(c.ctx)
	if err != nil {
		return response{}, err
	}
	return shown(statusBody{busy, busy, databaseStatus{totals.APIs, totals.Consumers, totals.Plugins, totals.Credentials}})
}
