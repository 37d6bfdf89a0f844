package freshet

import (
	"encoding/json"
	"time"
)

// API is an HTTP service behind the gateway: requests for its path, or for its host, go to its upstream.
type API struct {
	ID           string
	Name         string
	RequestHost  string // empty, or a host name with at most one * at either end
	RequestPath  string // empty, or one leading slash and no trailing one
	StripPath    bool   // whether RequestPath is taken off before forwarding
	PreserveHost bool   // whether the upstream sees the client's Host
	UpstreamURL  string
	BuiltIn      bool // one of the platform's own: has plugins, but cannot be changed or deleted
	CreatedAt    time.Time
}

// The platform's own APIs, which exist from the start. Their names are the first segment of their paths.
const (
	ManageAPIID  = "00000000-0000-7000-8000-000000000001"
	PublishAPIID = "00000000-0000-7000-8000-000000000002"
)

// Plugin is what the gateway does to requests of one API before it forwards them.
type Plugin struct {
	ID         string
	APIID      string
	ConsumerID string // empty, or the one consumer whose requests it applies to in place of the API's general one
	Name       string
	Config     json.RawMessage // an object, complete and valid
	Enabled    bool
	CreatedAt  time.Time
}

// Consumer is somebody who calls APIs through the gateway.
type Consumer struct {
	ID        string
	Username  string
	CustomID  string // how the consumer is known elsewhere
	CreatedAt time.Time
}

// Credential is a key by which a consumer is known.
type Credential struct {
	ID         string
	ConsumerID string
	Key        Key
	CreatedAt  time.Time
}
