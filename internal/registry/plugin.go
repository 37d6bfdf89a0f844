package registry

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// PluginWrite is one change of one plugin.
type PluginWrite struct {
	Act    Act
	API    string // whose, by identifier or name; empty where Plugin or Change says it
	Plugin string // see Registry.Plugin; empty to create one
	Change PluginChange
}

// PluginChange is what a request says about a plugin; nil is not said. Texts are as they were sent.
type PluginChange struct {
	ID, Name, APIID *string // may be repeated, not changed
	ConsumerID      *string
	Enabled         *bool
	Config          any // an object of what JSON or a form has; everything else is refused

	Unreadable []Fault // what was said in a way that cannot be read
}

// Plugin reads a change of a plugin.
func (v Values) Plugin() PluginChange {
	r := reader{values: v}
	c := PluginChange{
		ID: r.raw("id"), Name: r.text("name", notText), APIID: r.text("api_id", notText), ConsumerID: r.text("consumer_id", notText),
		Enabled: r.flag("enabled"), Config: v["config"],
	}
	r.onlyKnown("id", "created_at", "name", "api_id", "consumer_id", "enabled", "config")
	c.Unreadable = r.faults
	return c
}

// Plugin returns a plugin by its identifier. Below an API, which is named by identifier or name, a plugin may also be called by its
// name, as older scripts do.
func (r *Registry) Plugin(ctx context.Context, api, ref string) (*freshet.Plugin, error) {
	if api == "" {
		if !freshet.IsID(ref) {
			return nil, errNotFound
		}
		return found(r.store.Plugin(ctx, PluginFilter{ID: ref}))
	}
	owner, err := r.API(ctx, api)
	if err != nil {
		return nil, err
	}
	if freshet.IsID(ref) {
		return found(r.store.Plugin(ctx, PluginFilter{ID: ref, APIID: owner.ID}))
	}
	list, err := r.Plugins(ctx, PluginFilter{Name: ref, APIID: owner.ID}, Page{Size: 1})
	if err != nil {
		return nil, err
	}
	if ref == "" || list.Total != 1 { // several are of single consumers, and the name does not say whose
		return nil, errNotFound
	}
	return &list.Items[0], nil
}

// Plugins lists plugins, the oldest first.
func (r *Registry) Plugins(ctx context.Context, f PluginFilter, p Page) (Listing[freshet.Plugin], error) {
	list, err := r.store.Plugins(ctx, f, p.cursor())
	return pageOf(p, list, func(p *freshet.Plugin) string { return p.ID }, err)
}

// WritePlugin implements Writer. It returns the plugin as it is now; nil for one that was deleted.
func (r *Registry) WritePlugin(ctx context.Context, w PluginWrite) (*freshet.Plugin, error) {
	if r.writer != nil {
		return r.writer.WritePlugin(ctx, w)
	}
	if w.Act == Create {
		return r.createPlugin(ctx, &w)
	}
	old, err := r.Plugin(ctx, w.API, w.Plugin)
	if err != nil {
		return nil, err
	}
	if w.Act == Delete {
		return nil, r.unregister(ctx, func(tx *store.Tx) error { return tx.DeletePlugin(old.ID) })
	}
	return r.savePlugin(ctx, old.ID, &w)
}

func (r *Registry) createPlugin(ctx context.Context, w *PluginWrite) (*freshet.Plugin, error) {
	if w.API != "" {
		owner, err := r.API(ctx, w.API)
		if err != nil {
			return nil, err
		}
		w.Change.APIID = &owner.ID
		w.Change.Unreadable = slices.DeleteFunc(slices.Clone(w.Change.Unreadable), func(f Fault) bool { return f.Field == "api_id" })
	}
	made := &freshet.Plugin{ID: freshet.NewID(), CreatedAt: r.now()}
	if err := w.Change.apply(made, Create); err != nil {
		return nil, err
	}
	return found(made, r.register(ctx, func(tx *store.Tx, revision int64) error {
		if err := checkPlugin(tx, made); err != nil {
			return err
		}
		return tx.CreatePlugin(made, revision)
	}))
}

func (r *Registry) savePlugin(ctx context.Context, id string, w *PluginWrite) (*freshet.Plugin, error) {
	var saved *freshet.Plugin
	err := r.register(ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.Plugin(PluginFilter{ID: id}); err != nil {
			return err
		}
		if err := sameID(w.Change.ID, saved.ID); err != nil {
			return err
		}
		if w.Act == Replace {
			saved = &freshet.Plugin{ID: saved.ID, APIID: saved.APIID, Name: saved.Name, CreatedAt: saved.CreatedAt}
		}
		f := faults{}
		f.unchanged("name", w.Change.Name, saved.Name)
		f.unchanged("api_id", w.Change.APIID, saved.APIID)
		if err := f.err(freshet.Invalid); err != nil {
			return err
		}
		if err := w.Change.apply(saved, w.Act); err != nil {
			return err
		}
		if err := checkPlugin(tx, saved); err != nil {
			return err
		}
		return tx.SavePlugin(saved, revision)
	})
	return found(saved, err)
}

// apply puts the change into a plugin and checks the outcome.
func (c *PluginChange) apply(to *freshet.Plugin, act Act) error {
	f := faults(slices.Clone(c.Unreadable))
	if act != Update {
		to.Enabled = true
	}
	f.text("name", c.Name, &to.Name)
	f.text("api_id", c.APIID, &to.APIID)
	f.text("consumer_id", c.ConsumerID, &to.ConsumerID)
	flag(c.Enabled, &to.Enabled)
	if to.Name == "" {
		f.add("name", "is required")
	}
	if to.APIID == "" {
		f.add("api_id", "is required")
	}
	for name, id := range map[string]string{"api_id": to.APIID, "consumer_id": to.ConsumerID} {
		if id != "" && !freshet.IsID(id) {
			f.say(name, notID, id)
		}
	}
	if to.Name != "" {
		c.applyConfig(to, act, &f)
	}
	if err := f.err(freshet.Invalid); err != nil {
		return err
	}
	if to.ConsumerID != "" && kindNamed(to.Name).Schema.NoConsumer {
		return &Error{Kind: freshet.Invalid, Msg: "No consumer can be configured for that plugin"}
	}
	return nil
}

const notTable = "is not a table"

// applyConfig merges into what is there, or starts anew.
func (c *PluginChange) applyConfig(to *freshet.Plugin, act Act, f *faults) {
	kind := kindNamed(to.Name)
	if kind == nil {
		f.say("config", `Plugin "%s" not found`, to.Name)
		return
	}
	given, isObject := c.Config.(map[string]any)
	if c.Config != nil && !isObject {
		f.add("config", notTable)
		return
	}
	merged := Config{}
	if act == Update {
		merged = stored(to.Config)
	}
	maps.Copy(merged, given)
	text, err := json.Marshal(kind.Schema.complete(merged, f))
	if err != nil {
		f.add("config", notTable)
		return
	}
	to.Config = text
}

// stored reads a configuration; one that cannot be read is empty, and what is given has to be all of it.
func stored(raw json.RawMessage) Config {
	var c Config
	if err := json.Unmarshal(raw, &c); err != nil || c == nil {
		return Config{}
	}
	return c
}

// checkPlugin refuses references to nothing, and a second plugin of the same name.
func checkPlugin(tx *store.Tx, p *freshet.Plugin) error {
	f := faults{}
	_, err := tx.API(p.APIID)
	if err := f.missing("api_id", p.APIID, err); err != nil {
		return err
	}
	if p.ConsumerID != "" {
		_, err := tx.Consumer(p.ConsumerID)
		if err := f.missing("consumer_id", p.ConsumerID, err); err != nil {
			return err
		}
	}
	if err := f.err(freshet.NotFound); err != nil {
		return err
	}
	_, err = tx.PluginLike(p)
	if err := f.taken("name", p.Name, err); err != nil {
		return err
	}
	return f.errWith(freshet.Conflict, "Plugin configuration already exists")
}
