package kong

import (
	"encoding/json"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// pluginBody is a plugin as the dialect shows it.
type pluginBody struct {
	ID         string          `json:"id"`
	APIID      string          `json:"api_id"`
	ConsumerID string          `json:"consumer_id,omitempty"`
	Name       string          `json:"name"`
	Config     json.RawMessage `json:"config"`
	Enabled    bool            `json:"enabled"`
	CreatedAt  int64           `json:"created_at"`
}

func showPlugin(p *freshet.Plugin) pluginBody {
	return pluginBody{p.ID, p.APIID, p.ConsumerID, p.Name, p.Config, p.Enabled, p.CreatedAt.UnixMilli()}
}

// pluginPath splits the path below /apis and /plugins: the API that it names, or nothing, and the plugin.
func (c *call) pluginPath() (api, plugin string) {
	vars := c.vars
	if segments, _ := pathSegments(c.r.URL); segments[0] == "apis" {
		api, vars = vars[0], vars[1:]
	}
	if len(vars) > 0 {
		plugin = vars[0]
	}
	return api, plugin
}

func (h *Handler) listPlugins(c *call) (response, error) {
	ownerID := ""
	if api, _ := c.pluginPath(); api != "" {
		owner, err := h.Registry.API(c.ctx, api)
		if err != nil {
			return response{}, err
		}
		ownerID = owner.ID
	}
	filter, page, err := c.values.PluginFilter()
	if err != nil {
		return response{}, err
	}
	if ownerID != "" {
		filter.APIID = ownerID
	}
	list, err := h.Registry.Plugins(c.ctx, filter, page)
	return pageOf(c, page, list, showPlugin, err)
}

func (h *Handler) showPlugin(c *call) (response, error) {
	api, ref := c.pluginPath()
	found, err := h.Registry.Plugin(c.ctx, api, ref)
	if err != nil {
		return response{}, err
	}
	return shown(showPlugin(found))
}

// putPlugin replaces the plugin that the body names by identifier, or creates one.
func (h *Handler) putPlugin(c *call) (response, error) {
	id, ok := c.values.ID()
	if !ok {
		return h.createPlugin(c)
	}
	api, _ := c.pluginPath()
	switch _, err := h.Registry.Plugin(c.ctx, api, id); {
	case freshet.KindOf(err) == freshet.NotFound:
		return h.createPlugin(c) // which says so if it is the API that does not exist
	case err != nil:
		return response{}, err
	}
	return h.writePlugin(c, registry.Replace, id)
}

func (h *Handler) createPlugin(c *call) (response, error) {
	return h.writePlugin(c, registry.Create, "")
}

func (h *Handler) replacePlugin(c *call) (response, error) {
	_, ref := c.pluginPath()
	return h.writePlugin(c, registry.Replace, ref)
}

func (h *Handler) updatePlugin(c *call) (response, error) {
	_, ref := c.pluginPath()
	return h.writePlugin(c, registry.Update, ref)
}

func (h *Handler) deletePlugin(c *call) (response, error) {
	_, ref := c.pluginPath()
	return h.writePlugin(c, registry.Delete, ref)
}

func (h *Handler) writePlugin(c *call, act registry.Act, ref string) (response, error) {
	api, _ := c.pluginPath()
	w := registry.PluginWrite{Act: act, API: api, Plugin: ref}
	if act != registry.Delete {
		w.Change = c.values.Plugin()
	}
	saved, err := h.Registry.WritePlugin(c.ctx, w)
	return written(act, saved, showPlugin, err)
}

func (h *Handler) enabledPlugins(*call) (response, error) {
	return shown(map[string]any{"enabled_plugins": registry.KindNames()})
}

func (h *Handler) pluginSchema(c *call) (response, error) {
	schema := registry.SchemaOf(c.vars[0])
	if schema == nil {
		return response{}, freshet.Errorf(freshet.NotFound, "No plugin named '%s'", c.vars[0])
	}
	return shown(schema)
}
