package server

import "github.com/freshet-io/freshet/internal/settings"

// part is something that roles share and that is started before them.
type part string

// The parts below the roles.
const (
	partStore    part = "store"
	partGrid     part = "grid"
	partCatalog  part = "catalog"
	partRouter   part = "router"
	partUsage    part = "usage"
	partRegistry part = "registry"

	partPoller     part = "poller"
	partSubscriber part = "subscriber"
)

// role says what a role stands on.
type role struct {
	gatewayListener    bool
	subscriberListener bool
	parts              []part
}

// roles is the table of what needs what. One process may have any of them.
var roles = map[settings.Role]role{
	settings.RoleGateway: {
		// Routes registered APIs, and their administration on the admin listener.
		gatewayListener: true,
		parts:           []part{partStore, partGrid, partCatalog, partRegistry},
	},
	settings.RoleManage: {
		// The management API, /api/v1.
		gatewayListener: true,
		parts:           []part{partStore, partGrid, partCatalog, partRegistry, partRouter, partUsage},
	},
	settings.RolePublish: {
		// The publishing API, /publish/v1.
		gatewayListener: true,
		parts:           []part{partStore, partGrid, partCatalog, partRouter, partUsage},
	},
	settings.RolePoll: {
		// Polls targets of poller topics; no listener of its own.
		parts: []part{partStore, partGrid, partCatalog, partRouter, partUsage, partPoller},
	},
	settings.RoleSubscribe: {
		// Event streams to subscribers.
		subscriberListener: true,
		parts:              []part{partStore, partGrid, partCatalog, partRouter, partUsage, partSubscriber},
	},
}

// needs is what a set of roles needs together.
type needs struct {
	gatewayListener    bool
	subscriberListener bool
	parts              map[part]bool
}

func needsOf(names []settings.Role) needs {
	n := needs{parts: map[part]bool{}}
	for _, name := range names {
		r := roles[name]
		n.gatewayListener = n.gatewayListener || r.gatewayListener
		n.subscriberListener = n.subscriberListener || r.subscriberListener
		for _, p := range r.parts {
			n.parts[p] = true
		}
	}
	return n
}
