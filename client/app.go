package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/freshet-io/freshet"
)

// App groups topics that share keys.
type App struct {
	ID                            string      `json:"id"`
	Name                          string      `json:"name"`
	AutoProvisioningAllowed       bool        `json:"auto_provisioning_allowed"`
	ClientRequestSignatureEnabled bool        `json:"client_request_signature_enabled"`
	DefaultConfigurations         AppDefaults `json:"default_configurations"`
	Quotas                        Quotas      `json:"quotas"`
	SubscriberKey                 string      `json:"subscriber_key"`
	PublisherKey                  string      `json:"publisher_key"`
	SignatureKey                  string      `json:"signature_key"`
	CreatedAt                     time.Time   `json:"created_at"`
	UpdatedAt                     time.Time   `json:"updated_at"`
	Links                         []Link      `json:"links,omitempty"`
}

// AppDefaults are what topics of an app take where they set nothing themselves.
type AppDefaults struct {
	Poller struct {
		PollingFrequency int64 `json:"polling_frequency"` // milliseconds
	} `json:"http-poller"`
	Post struct {
		ForcePublishing bool `json:"force_publishing"`
	} `json:"http-post"`
}

// AppChange makes an app or changes what is set in it. Only Name is required to make one.
type AppChange struct {
	Name                          Value[string]         `json:"name,omitzero"`
	AutoProvisioningAllowed       Value[bool]           `json:"auto_provisioning_allowed,omitzero"`
	ClientRequestSignatureEnabled Value[bool]           `json:"client_request_signature_enabled,omitzero"`
	DefaultConfigurations         Value[DefaultsChange] `json:"default_configurations,omitzero"`
}

// DefaultsChange changes what topics of an app take where they set nothing themselves.
type DefaultsChange struct {
	Poller Value[PollerDefaults] `json:"http-poller,omitzero"`
	Post   Value[PostDefaults]   `json:"http-post,omitzero"`
}

// PollerDefaults are for http-poller topics.
type PollerDefaults struct {
	PollingFrequency Value[int64] `json:"polling_frequency,omitzero"` // milliseconds
}

// PostDefaults are for http-post topics.
type PostDefaults struct {
	ForcePublishing Value[bool] `json:"force_publishing,omitzero"`
}

// CreateApp makes an app with fresh keys.
func (c *Client) CreateApp(ctx context.Context, app AppChange) (*App, error) {
	return ask[App](ctx, c, http.MethodPost, "/apps", app)
}

// Apps lists one's own apps.
func (c *Client) Apps(ctx context.Context) iter.Seq2[App, error] { return list[App](ctx, c, "/apps") }

// App reads an app with its keys.
func (c *Client) App(ctx context.Context, id string) (*App, error) {
	return ask[App](ctx, c, http.MethodGet, "/apps/"+escape(id), nil)
}

// UpdateApp changes an app.
func (c *Client) UpdateApp(ctx context.Context, id string, change AppChange) (*App, error) {
	return ask[App](ctx, c, http.MethodPatch, "/apps/"+escape(id), change)
}

// DeleteApp deletes an app with its topics and keys.
func (c *Client) DeleteApp(ctx context.Context, id string) error {
	return c.manage(ctx, http.MethodDelete, "/apps/"+escape(id), nil, nil)
}

// Renewal says how a key is renewed. The zero value makes a fresh one and revokes the old one at once.
type Renewal struct {
	Key     string        // a key to bring along from elsewhere
	Overlap time.Duration // how long the old key goes on working
}

// RenewKey gives an app another key and returns the app with it.
func (c *Client) RenewKey(ctx context.Context, appID string, kind freshet.KeyKind, r Renewal) (*App, error) {
	in := map[string]any{}
	if r.Key != "" {
		in["key"] = r.Key
	}
	if r.Overlap > 0 {
		in["overlap_seconds"] = int64(r.Overlap / time.Second)
	}
	// Repeating it would make yet another key.
	k := &call{method: http.MethodPut, url: c.base + "/api/v1/apps/" + escape(appID) + "/" + string(kind) + "_key", at: c.base}
	return exchange[App](ctx, c, k, in)
}
