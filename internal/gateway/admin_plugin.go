package gateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
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

func pluginID(p *freshet.Plugin) string { return p.ID }

// ofAPI splits the path below /apis and /plugins: the API that the path names, or nil, and what follows.
func (a *Administration) ofAPI(c *call) (api *freshet.API, rest []string, err error) {
	segments, _ := pathSegments(c.r.URL)
	if segments[0] != "apis" {
		return nil, c.vars, nil
	}
	api, err = a.store.API(c.ctx, c.vars[0])
	return api, c.vars[1:], err
}

func (a *Administration) listPlugins(c *call) (reply, error) {
	api, _, err := a.ofAPI(c)
	if err != nil {
		return reply{}, err
	}
	var f store.PluginFilter
	page, err := c.filters(map[string]*string{"id": &f.ID, "name": &f.Name, "api_id": &f.APIID, "consumer_id": &f.ConsumerID})
	if err != nil {
		return reply{}, err
	}
	if api != nil {
		f.APIID = api.ID
	}
	list, err := a.store.Plugins(c.ctx, f, page)
	if err != nil {
		return reply{}, err
	}
	return pageOf(c, page, list, pluginID, showPlugin)
}

// plugin returns the one that the path names: by identifier, or below an API by name, as older scripts do.
func (a *Administration) plugin(c *call) (*freshet.Plugin, error) {
	api, rest, err := a.ofAPI(c)
	if err != nil {
		return nil, err
	}
	ref := rest[0]
	switch {
	case api == nil && freshet.IsID(ref):
		return a.store.Plugin(c.ctx, store.PluginFilter{ID: ref})
	case api == nil:
		return nil, errNotFound
	case freshet.IsID(ref):
		return a.store.Plugin(c.ctx, store.PluginFilter{ID: ref, APIID: api.ID})
	}
	list, err := a.store.Plugins(c.ctx, store.PluginFilter{Name: ref, APIID: api.ID}, store.Cursor{Limit: 2})
	if err != nil {
		return nil, err
	}
	if ref == "" || len(list.Items) != 1 { // several are of single consumers, and the name does not say whose
		return nil, errNotFound
	}
	return &list.Items[0], nil
}

func (a *Administration) showPlugin(c *call) (reply, error) {
	p, err := a.plugin(c)
	if err != nil {
		return reply{}, err
	}
	return shown(showPlugin(p))
}

func (a *Administration) createPlugin(c *call) (reply, error) {
	api, _, err := a.ofAPI(c)
	if err != nil {
		return reply{}, err
	}
	made := &freshet.Plugin{ID: freshet.NewID(), CreatedAt: a.now()}
	if api != nil {
		c.params["api_id"] = api.ID
	}
	if err := c.params.readPlugin(made, whole); err != nil {
		return reply{}, err
	}
	err = a.register(c.ctx, func(tx *store.Tx, revision int64) error {
		if err := checkPlugin(tx, made); err != nil {
			return err
		}
		return tx.CreatePlugin(made, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return created(showPlugin(made))
}

// putPlugin replaces the plugin that the body names by id, or creates one.
func (a *Administration) putPlugin(c *call) (reply, error) {
	api, _, err := a.ofAPI(c)
	if err != nil {
		return reply{}, err
	}
	id, _ := c.params["id"].(string)
	f := store.PluginFilter{ID: id}
	if api != nil {
		f.APIID = api.ID
	}
	old := (*freshet.Plugin)(nil)
	if freshet.IsID(id) {
		if old, err = a.store.Plugin(c.ctx, f); err != nil && freshet.KindOf(err) != freshet.NotFound {
			return reply{}, err
		}
	}
	if old == nil {
		return a.createPlugin(c)
	}
	return a.savePlugin(c, old.ID, whole)
}

func (a *Administration) replacePlugin(c *call) (reply, error) { return a.saveNamedPlugin(c, whole) }

func (a *Administration) patchPlugin(c *call) (reply, error) { return a.saveNamedPlugin(c, partial) }

func (a *Administration) saveNamedPlugin(c *call, e extent) (reply, error) {
	p, err := a.plugin(c)
	if err != nil {
		return reply{}, err
	}
	return a.savePlugin(c, p.ID, e)
}

func (a *Administration) savePlugin(c *call, id string, e extent) (reply, error) {
	var saved *freshet.Plugin
	err := a.register(c.ctx, func(tx *store.Tx, revision int64) (err error) {
		old, err := tx.Plugin(store.PluginFilter{ID: id})
		if err != nil {
			return err
		}
		if err := c.params.sameID(old.ID); err != nil {
			return err
		}
		saved = old
		if e == whole {
			saved = &freshet.Plugin{ID: old.ID, APIID: old.APIID, Name: old.Name, CreatedAt: old.CreatedAt}
		}
		if err := c.params.fixed(map[string]string{"name": old.Name, "api_id": old.APIID}); err != nil {
			return err
		}
		if err := c.params.readPlugin(saved, e); err != nil {
			return err
		}
		if err := checkPlugin(tx, saved); err != nil {
			return err
		}
		return tx.SavePlugin(saved, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return shown(showPlugin(saved))
}

func (a *Administration) deletePlugin(c *call) (reply, error) {
	p, err := a.plugin(c)
	if err != nil {
		return reply{}, err
	}
	return gone(a.unregister(c.ctx, func(tx *store.Tx) error { return tx.DeletePlugin(p.ID) }))
}

// fixed refuses other values for fields that cannot change.
func (p params) fixed(values map[string]string) error {
	f := faults{}
	for name, value := range values {
		if given, ok := p[name]; ok && given != value {
			f.add(name, "%s cannot be updated", name)
		}
	}
	return f.err()
}

// readPlugin puts what the request says into to and checks the outcome.
func (p params) readPlugin(to *freshet.Plugin, e extent) error {
	f := faults{}
	if e == whole {
		to.Enabled = true
	}
	p.text("name", &to.Name, f)
	p.text("api_id", &to.APIID, f)
	p.text("consumer_id", &to.ConsumerID, f)
	p.flag("enabled", &to.Enabled, f)
	p.onlyKnown(f, "id", "created_at", "name", "api_id", "consumer_id", "enabled", "config")
	if to.Name == "" {
		f.add("name", "name is required")
	}
	if to.APIID == "" {
		f.add("api_id", "api_id is required")
	}
	for name, id := range map[string]string{"api_id": to.APIID, "consumer_id": to.ConsumerID} {
		if id != "" && !freshet.IsID(id) {
			f.add(name, "%s is an invalid uuid", id)
		}
	}
	if to.Name != "" {
		p.readConfig(to, e, f)
	}
	if err := f.err(); err != nil {
		return err
	}
	if to.ConsumerID != "" && kindNamed(to.Name).schema.NoConsumer {
		return refuse(http.StatusBadRequest, message{"No consumer can be configured for that plugin"})
	}
	return nil
}

// readConfig merges into what is there, or starts anew.
func (p params) readConfig(to *freshet.Plugin, e extent, f faults) {
	k := kindNamed(to.Name)
	if k == nil {
		f.add("config", `Plugin "%s" not found`, to.Name)
		return
	}
	given := map[string]any{}
	if v, ok := p["config"]; ok && v != nil {
		if given, ok = v.(map[string]any); !ok {
			f.add("config", "config is not a table")
			return
		}
	}
	merged := map[string]any{}
	if e == partial {
		merged = storedConfig(to.Config)
	}
	maps.Copy(merged, given)
	c, wrong := k.schema.complete(merged)
	f.addAll(wrong)
	text, err := json.Marshal(c)
	if err != nil {
		f.add("config", "config is not a table")
		return
	}
	to.Config = text
}

// storedConfig reads numbers as they were written.
func storedConfig(raw json.RawMessage) map[string]any {
	c := config{}
	if err := json.Unmarshal(raw, &c); err != nil {
		return map[string]any{}
	}
	out := map[string]any{}
	for name, v := range c {
		if _, isNumber := v.(float64); isNumber {
			n, _ := c.number(name)
			v = json.Number(itoa(n))
		}
		out[name] = v
	}
	return out
}

// checkPlugin refuses references to nothing, and a second plugin of the same name.
func checkPlugin(tx *store.Tx, p *freshet.Plugin) error {
	f := faults{}
	if _, err := tx.API(p.APIID); err != nil {
		if err := missing(f, "api_id", p.APIID, err); err != nil {
			return err
		}
	}
	if p.ConsumerID != "" {
		if _, err := tx.Consumer(p.ConsumerID); err != nil {
			if err := missing(f, "consumer_id", p.ConsumerID, err); err != nil {
				return err
			}
		}
	}
	if err := f.errWith(http.StatusNotFound); err != nil {
		return err
	}
	_, err := tx.PluginLike(p)
	if err := taken(f, "name", p.Name, err); err != nil {
		return err
	}
	if len(f) > 0 {
		f.add("message", "Plugin configuration already exists")
	}
	return f.errWith(http.StatusConflict)
}

// missing adds a fault for a reference to nothing, and returns any other error.
func missing(f faults, field, id string, err error) error {
	if freshet.KindOf(err) != freshet.NotFound {
		return err
	}
	f.add(field, "%s %s does not exist", field, id)
	return nil
}

func (a *Administration) enabledPlugins(*call) (reply, error) {
	return shown(map[string]any{"enabled_plugins": kindNames()})
}

func (a *Administration) pluginSchema(c *call) (reply, error) {
	k := kindNamed(c.vars[0])
	if k == nil {
		return reply{}, refuse(http.StatusNotFound, message{"No plugin named '" + c.vars[0] + "'"})
	}
	return shown(k.schema)
}

// inUse names the plugins that any API has.
func (r *Registry) inUse() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := []string{}
	for _, all := range r.plugins {
		for _, p := range all {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
