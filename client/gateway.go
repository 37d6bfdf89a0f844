package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Gateway is the administration of a gateway, which is not on a public listener and asks for no token.
type Gateway struct{ c *Client }

// Gateway returns the administration at AdminURL.
func (c *Client) Gateway() *Gateway { return &Gateway{c} }

// API is an upstream that the gateway serves at a path of its own.
type API struct {
	ID               string `json:"id,omitempty"`
	Name             string `json:"name,omitempty"`
	UpstreamURL      string `json:"upstream_url,omitempty"`
	RequestPath      string `json:"request_path,omitempty"`
	StripRequestPath bool   `json:"strip_request_path"`
	PreserveHost     bool   `json:"preserve_host"`
	CreatedAt        int64  `json:"created_at,omitempty"` // milliseconds
}

// Plugin does something with the calls of an API: cors, key-auth or rate-limiting.
type Plugin struct {
	ID        string         `json:"id,omitempty"`
	APIID     string         `json:"api_id,omitempty"`
	Name      string         `json:"name,omitempty"`
	Config    map[string]any `json:"config,omitempty"`
	Enabled   bool           `json:"enabled"`
	CreatedAt int64          `json:"created_at,omitempty"` // milliseconds
}

// Consumer is somebody who calls APIs through the gateway.
type Consumer struct {
	ID        string `json:"id,omitempty"`
	Username  string `json:"username,omitempty"`
	CustomID  string `json:"custom_id,omitempty"`
	CreatedAt int64  `json:"created_at,omitempty"` // milliseconds
}

// ConsumerKey is what a consumer shows to the plugin key-auth.
type ConsumerKey struct {
	ID         string `json:"id,omitempty"`
	ConsumerID string `json:"consumer_id,omitempty"`
	Key        string `json:"key,omitempty"`
	CreatedAt  int64  `json:"created_at,omitempty"` // milliseconds
}

// Fields are members of a request, by name. A change leaves alone what it does not name.
type Fields map[string]any

// CreateAPI registers an API; it needs name or request_path, and upstream_url.
func (g *Gateway) CreateAPI(ctx context.Context, f Fields) (*API, error) {
	return create[API](ctx, g, "/apis", f)
}

// APIs lists the APIs.
func (g *Gateway) APIs(ctx context.Context) ([]API, error) { return every[API](ctx, g, "/apis") }

// API reads an API, by name or id.
func (g *Gateway) API(ctx context.Context, name string) (*API, error) {
	return read[API](ctx, g, "/apis/"+escape(name))
}

// UpdateAPI changes an API.
func (g *Gateway) UpdateAPI(ctx context.Context, name string, f Fields) (*API, error) {
	return change[API](ctx, g, "/apis/"+escape(name), f)
}

// DeleteAPI deletes an API with its plugins.
func (g *Gateway) DeleteAPI(ctx context.Context, name string) error {
	return g.remove(ctx, "/apis/"+escape(name))
}

// AddPlugin attaches a plugin to an API.
func (g *Gateway) AddPlugin(ctx context.Context, api, plugin string, config Fields) (*Plugin, error) {
	f := Fields{"name": plugin}
	if len(config) > 0 {
		f["config"] = config
	}
	return create[Plugin](ctx, g, "/apis/"+escape(api)+"/plugins", f)
}

// Plugins lists the plugins of an API, or of all if it is empty.
func (g *Gateway) Plugins(ctx context.Context, api string) ([]Plugin, error) {
	if api == "" {
		return every[Plugin](ctx, g, "/plugins")
	}
	return every[Plugin](ctx, g, "/apis/"+escape(api)+"/plugins")
}

// UpdatePlugin changes a plugin of an API.
func (g *Gateway) UpdatePlugin(ctx context.Context, api, id string, f Fields) (*Plugin, error) {
	return change[Plugin](ctx, g, "/apis/"+escape(api)+"/plugins/"+escape(id), f)
}

// RemovePlugin detaches a plugin from an API.
func (g *Gateway) RemovePlugin(ctx context.Context, api, id string) error {
	return g.remove(ctx, "/apis/"+escape(api)+"/plugins/"+escape(id))
}

// CreateConsumer makes a consumer; it needs username or custom_id.
func (g *Gateway) CreateConsumer(ctx context.Context, f Fields) (*Consumer, error) {
	return create[Consumer](ctx, g, "/consumers", f)
}

// Consumers lists the consumers.
func (g *Gateway) Consumers(ctx context.Context) ([]Consumer, error) {
	return every[Consumer](ctx, g, "/consumers")
}

// Consumer reads a consumer, by username or id.
func (g *Gateway) Consumer(ctx context.Context, name string) (*Consumer, error) {
	return read[Consumer](ctx, g, "/consumers/"+escape(name))
}

// UpdateConsumer changes a consumer.
func (g *Gateway) UpdateConsumer(ctx context.Context, name string, f Fields) (*Consumer, error) {
	return change[Consumer](ctx, g, "/consumers/"+escape(name), f)
}

// DeleteConsumer deletes a consumer with its keys.
func (g *Gateway) DeleteConsumer(ctx context.Context, name string) error {
	return g.remove(ctx, "/consumers/"+escape(name))
}

// AddKey gives a consumer a key; an empty one is made by the gateway.
func (g *Gateway) AddKey(ctx context.Context, consumer, key string) (*ConsumerKey, error) {
	f := Fields{}
	if key != "" {
		f["key"] = key
	}
	return create[ConsumerKey](ctx, g, "/consumers/"+escape(consumer)+"/key-auth", f)
}

// Keys lists the keys of a consumer.
func (g *Gateway) Keys(ctx context.Context, consumer string) ([]ConsumerKey, error) {
	return every[ConsumerKey](ctx, g, "/consumers/"+escape(consumer)+"/key-auth")
}

// RemoveKey takes a key, by its id, away from a consumer.
func (g *Gateway) RemoveKey(ctx context.Context, consumer, id string) error {
	return g.remove(ctx, "/consumers/"+escape(consumer)+"/key-auth/"+escape(id))
}

func (g *Gateway) call(method, path string) *call {
	return &call{method: method, url: g.c.admin + path, at: g.c.admin, idempotent: method != http.MethodPost, anonymous: true}
}

func (g *Gateway) remove(ctx context.Context, path string) error {
	return g.c.exchange(ctx, g.call(http.MethodDelete, path), nil, nil)
}

func create[T any](ctx context.Context, g *Gateway, path string, f Fields) (*T, error) {
	return exchange[T](ctx, g.c, g.call(http.MethodPost, path), f)
}

func read[T any](ctx context.Context, g *Gateway, path string) (*T, error) {
	return exchange[T](ctx, g.c, g.call(http.MethodGet, path), nil)
}

func change[T any](ctx context.Context, g *Gateway, path string, f Fields) (*T, error) {
	return exchange[T](ctx, g.c, g.call(http.MethodPatch, path), f)
}

// every follows the next links, which name the host as the server sees it: only their query is taken.
func every[T any](ctx context.Context, g *Gateway, path string) ([]T, error) {
	var all []T
	for query := ""; ; {
		var page struct {
			Data json.RawMessage `json:"data"`
			Next string          `json:"next"`
		}
		if err := g.c.exchange(ctx, g.call(http.MethodGet, path+query), nil, &page); err != nil {
			return nil, err
		}
		items, err := listed[T](page.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		next := queryOf(page.Next)
		if next == "" || next == query {
			return all, nil
		}
		query = next
	}
}

// queryOf is the query of a link with its question mark. A link that cannot be followed has none.
func queryOf(link string) string {
	if u, err := url.Parse(link); err == nil && u.RawQuery != "" {
		return "?" + u.RawQuery
	}
	return ""
}

// listed reads an array; some gateways of this dialect write an empty one as {}.
func listed[T any](data json.RawMessage) ([]T, error) {
	if len(data) == 0 || string(data) == "{}" || string(data) == "null" {
		return nil, nil
	}
	var items []T
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("client: the gateway lists something else: %w", err)
	}
	return items, nil
}
