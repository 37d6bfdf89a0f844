package manage

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// registeredAPI is an API behind the gateway.
type registeredAPI struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	RequestHost  string `json:"request_host,omitempty"`
	RequestPath  string `json:"request_path,omitempty"`
	StripPath    bool   `json:"strip_request_path"`
	PreserveHost bool   `json:"preserve_host"`
	UpstreamURL  string `json:"upstream_url"`
	BuiltIn      bool   `json:"built_in,omitempty"`
	CreatedAt    int64  `json:"created_at"` // milliseconds, as in everything here: 0 for what was always there
}

func showRegisteredAPI(a *freshet.API) *registered {
	b := registeredAPI{a.ID, a.Name, a.RequestHost, a.RequestPath, a.StripPath, a.PreserveHost, a.UpstreamURL, a.BuiltIn, 0}
	if !a.CreatedAt.IsZero() {
		b.CreatedAt = a.CreatedAt.UnixMilli()
	}
	return &registered{a.ID, b}
}

// registeredPlugin is what is done to the requests of an API.
type registeredPlugin struct {
	ID         string          `json:"id"`
	APIID      string          `json:"api_id"`
	ConsumerID string          `json:"consumer_id,omitempty"`
	Name       string          `json:"name"`
	Config     json.RawMessage `json:"config"`
	Enabled    bool            `json:"enabled"`
	CreatedAt  int64           `json:"created_at"`
}

func showRegisteredPlugin(p *freshet.Plugin) *registered {
	return &registered{p.ID, registeredPlugin{p.ID, p.APIID, p.ConsumerID, p.Name, p.Config, p.Enabled, p.CreatedAt.UnixMilli()}}
}

// registeredConsumer is somebody who calls APIs; never with keys.
type registeredConsumer struct {
	ID        string `json:"id"`
	Username  string `json:"username,omitempty"`
	CustomID  string `json:"custom_id,omitempty"`
	CreatedAt int64  `json:"created_at"`
}

func showRegisteredConsumer(c *freshet.Consumer) *registered {
	return &registered{c.ID, registeredConsumer{c.ID, c.Username, c.CustomID, c.CreatedAt.UnixMilli()}}
}

// registeredKey is a consumer's key, shown to the admin who manages it.
type registeredKey struct {
	ID         string `json:"id"`
	ConsumerID string `json:"consumer_id"`
	Key        string `json:"key"`
	CreatedAt  int64  `json:"created_at"`
}

func showRegisteredKey(c *freshet.Credential) *registered {
	return &registered{c.ID, registeredKey{c.ID, c.ConsumerID, c.Key.Reveal(), c.CreatedAt.UnixMilli()}}
}

// registeredPage is a page of a list, with the address of the next one.
type registeredPage struct {
	Data  []any  `json:"data"`
	Next  string `json:"next,omitempty"`
	Total int64  `json:"total"`
}

func showPage[T any](c *GatewayCall, p registry.Page, list registry.Listing[T], show func(*T) *registered, err error) (*registered, error) {
	if err != nil {
		return nil, err
	}
	page := registeredPage{Data: []any{}, Total: list.Total}
	for i := range list.Items {
		page.Data = append(page.Data, show(&list.Items[i]).body)
	}
	if list.Next != "" {
		page.Next = c.nextPage(list.Next, p.Size)
	}
	return &registered{body: page}, nil
}

func (c *GatewayCall) nextPage(after string, size int64) string {
	next := url.URL{Path: linkPrefix + c.url.Path}
	if c.url.RawPath != "" {
		next.RawPath = linkPrefix + c.url.RawPath
	}
	query := c.url.Query()
	query.Set("offset", after)
	query.Set("size", strconv.FormatInt(size, 10))
	next.RawQuery = query.Encode()
	return next.String()
}

// show shows what was found or written.
func show[T any](thing *T, err error, show func(*T) *registered) (*registered, error) {
	if err != nil {
		return nil, err
	}
	return show(thing), nil
}

// gone shows nothing.
func gone(err error) (*registered, error) { return &registered{}, err }

func listAPIs(r *registry.Registry, c *GatewayCall) (*registered, error) {
	filter, page, err := c.values.APIFilter()
	if err != nil {
		return nil, err
	}
	list, err := r.APIs(c.ctx, filter, page)
	return showPage(c, page, list, showRegisteredAPI, err)
}

func getAPI(r *registry.Registry, c *GatewayCall) (*registered, error) {
	found, err := r.API(c.ctx, c.api)
	return show(found, err, showRegisteredAPI)
}

func createAPI(r *registry.Registry, c *GatewayCall) (*registered, error) {
	made, err := r.WriteAPI(c.ctx, registry.APIWrite{Act: registry.Create, Change: c.values.API()})
	return show(made, err, showRegisteredAPI)
}

func updateAPI(r *registry.Registry, c *GatewayCall) (*registered, error) {
	saved, err := r.WriteAPI(c.ctx, registry.APIWrite{Act: registry.Update, API: c.api, Change: c.values.API()})
	return show(saved, err, showRegisteredAPI)
}

func deleteAPI(r *registry.Registry, c *GatewayCall) (*registered, error) {
	_, err := r.WriteAPI(c.ctx, registry.APIWrite{Act: registry.Delete, API: c.api})
	return gone(err)
}

// listPlugins lists those of one API, if the path names one.
func listPlugins(r *registry.Registry, c *GatewayCall) (*registered, error) {
	ownerID := ""
	if c.api != "" {
		owner, err := r.API(c.ctx, c.api)
		if err != nil {
			return nil, err
		}
		ownerID = owner.ID
	}
	filter, page, err := c.values.PluginFilter()
	if err != nil {
		return nil, err
	}
	if ownerID != "" {
		filter.APIID = ownerID
	}
	list, err := r.Plugins(c.ctx, filter, page)
	return showPage(c, page, list, showRegisteredPlugin, err)
}

// getPlugin also tells which plugins there are, at the path where the administration listener has that.
func getPlugin(r *registry.Registry, c *GatewayCall) (*registered, error) {
	if c.plugin == "enabled" {
		return &registered{body: map[string]any{"enabled_plugins": registry.KindNames()}}, nil
	}
	found, err := r.Plugin(c.ctx, "", c.plugin)
	return show(found, err, showRegisteredPlugin)
}

func createPlugin(r *registry.Registry, c *GatewayCall) (*registered, error) {
	made, err := r.WritePlugin(c.ctx, registry.PluginWrite{Act: registry.Create, API: c.api, Change: c.values.Plugin()})
	return show(made, err, showRegisteredPlugin)
}

func updatePlugin(r *registry.Registry, c *GatewayCall) (*registered, error) {
	saved, err := r.WritePlugin(c.ctx, registry.PluginWrite{Act: registry.Update, Plugin: c.plugin, Change: c.values.Plugin()})
	return show(saved, err, showRegisteredPlugin)
}

func deletePlugin(r *registry.Registry, c *GatewayCall) (*registered, error) {
	_, err := r.WritePlugin(c.ctx, registry.PluginWrite{Act: registry.Delete, Plugin: c.plugin})
	return gone(err)
}

func listConsumers(r *registry.Registry, c *GatewayCall) (*registered, error) {
	filter, page, err := c.values.ConsumerFilter()
	if err != nil {
		return nil, err
	}
	list, err := r.Consumers(c.ctx, filter, page)
	return showPage(c, page, list, showRegisteredConsumer, err)
}

func getConsumer(r *registry.Registry, c *GatewayCall) (*registered, error) {
	found, err := r.Consumer(c.ctx, c.consumer)
	return show(found, err, showRegisteredConsumer)
}

func createConsumer(r *registry.Registry, c *GatewayCall) (*registered, error) {
	made, err := r.WriteConsumer(c.ctx, registry.ConsumerWrite{Act: registry.Create, Change: c.values.Consumer()})
	return show(made, err, showRegisteredConsumer)
}

func updateConsumer(r *registry.Registry, c *GatewayCall) (*registered, error) {
	saved, err := r.WriteConsumer(c.ctx, registry.ConsumerWrite{Act: registry.Update, Consumer: c.consumer, Change: c.values.Consumer()})
	return show(saved, err, showRegisteredConsumer)
}

func deleteConsumer(r *registry.Registry, c *GatewayCall) (*registered, error) {
	_, err := r.WriteConsumer(c.ctx, registry.ConsumerWrite{Act: registry.Delete, Consumer: c.consumer})
	return gone(err)
}

func listKeys(r *registry.Registry, c *GatewayCall) (*registered, error) {
	owner, err := r.Consumer(c.ctx, c.consumer)
	if err != nil {
		return nil, err
	}
	filter, page, err := c.values.CredentialFilter()
	if err != nil {
		return nil, err
	}
	filter.ConsumerID = owner.ID
	list, err := r.Credentials(c.ctx, filter, page)
	return showPage(c, page, list, showRegisteredKey, err)
}

func createKey(r *registry.Registry, c *GatewayCall) (*registered, error) {
	made, err := r.WriteCredential(c.ctx, registry.CredentialWrite{Act: registry.Create, Consumer: c.consumer, Change: c.values.Credential()})
	return show(made, err, showRegisteredKey)
}

func deleteKey(r *registry.Registry, c *GatewayCall) (*registered, error) {
	_, err := r.WriteCredential(c.ctx, registry.CredentialWrite{Act: registry.Delete, Consumer: c.consumer, Credential: c.key})
	return gone(err)
}
