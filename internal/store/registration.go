package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/freshet-io/freshet"
)

// Revision counts the changes to what is registered at the gateway. Changes happen one after the other, so whoever has
// seen a revision has seen everything up to it.
type Revision struct {
	Newest  int64
	Deleted int64 // the newest one that took something away
}

// GatewayRevision returns where the registrations stand.
func (s *Store) GatewayRevision(ctx context.Context) (r Revision, err error) {
	err = s.reader(ctx).row(`SELECT revision, deleted FROM gateway_revision`, nil, &r.Newest, &r.Deleted)
	return r, err
}

// Registering begins a change of what is registered: it returns the revision that the change makes, and keeps others from
// making one until the transaction ends. What it finds to be free is still free when it writes.
func (tx *Tx) Registering() (revision int64, err error) {
	return tx.newRevision(`UPDATE gateway_revision SET revision = revision + 1`)
}

// Unregistering is Registering for a change that takes something away.
func (tx *Tx) Unregistering() (revision int64, err error) {
	return tx.newRevision(`UPDATE gateway_revision SET revision = revision + 1, deleted = revision + 1`)
}

func (tx *Tx) newRevision(query string) (revision int64, err error) {
	if err := tx.write("revision", query); err != nil {
		return 0, err
	}
	if err := tx.row(`SELECT revision FROM gateway_revision`, nil, &revision); err != nil {
		tx.failed = err
	}
	return revision, tx.failed
}

// Cursor is a part of a listing that goes by identifier: what comes after one, and how many at most.
type Cursor struct {
	After string
	Limit int64
}

// registration is how one table of the gateway is read.
type registration[T any] struct {
	noun, table, columns string
	dest                 func(r *T) []any
	done                 func(r *T) // after a row was read
}

// where is a condition in the making.
type where struct {
	text  string
	args  []any
	never bool // asks for something that no column can hold
}

// equal adds a condition unless the value is empty.
func (w *where) equal(column, value string) {
	if value == "" {
		return
	}
	w.never = w.never || !isText(value)
	w.and(column+" = ", value)
}

func (w *where) and(condition string, value any) {
	w.args = append(w.args, value)
	if w.text == "" {
		w.text = " WHERE "
	} else {
		w.text += " AND "
	}
	w.text += condition + "$" + strconv.Itoa(len(w.args))
}

func (t *registration[T]) one(c conn, w where) (*T, error) {
	if w.never || w.text == "" { // nothing asked for is nothing found, never just any row
		return nil, notFound(t.noun)
	}
	var found T
	err := c.row(`SELECT `+t.columns+` FROM `+t.table+w.text, w.args, t.dest(&found)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound(t.noun)
	}
	if err != nil {
		return nil, err
	}
	t.done(&found)
	return &found, nil
}

// since reads everything that changed after the revision.
func (t *registration[T]) since(c conn, revision int64) (all []T, err error) {
	err = c.rows(`SELECT `+t.columns+` FROM `+t.table+` WHERE revision > $1`, []any{revision}, func(scan scanner) error {
		var r T
		err := scan(t.dest(&r)...)
		t.done(&r)
		all = append(all, r)
		return err
	})
	return all, err
}

// list reads one page of what matches, and how many do in all. It reads no row twice when others come or go meanwhile.
func (t *registration[T]) list(c conn, w where, page Cursor, id func(*T) string) (list Listing[T], err error) {
	if w.never || !isText(page.After) {
		return list, nil
	}
	counted := w.text
	w.and("id > ", page.After)
	w.args = append(w.args, min(max(page.Limit, 0), maxPage))
	err = c.rows(`SELECT c.total, r.* FROM (SELECT count(*) AS total FROM `+t.table+counted+`) c
		LEFT JOIN (SELECT `+t.columns+` FROM `+t.table+w.text+` ORDER BY id LIMIT $`+strconv.Itoa(len(w.args))+`) r ON TRUE
		ORDER BY r.id`, w.args, func(scan scanner) error {
		var r T
		if err := scan(append([]any{&list.Total}, t.dest(&r)...)...); err != nil || id(&r) == "" {
			return err
		}
		t.done(&r)
		list.Items = append(list.Items, r)
		return nil
	})
	return list, err
}

type apiRow struct {
	api     freshet.API
	created int64
}

var apis = registration[apiRow]{
	noun: "API", table: "gateway_apis",
	columns: `id, name, request_host, request_path, strip_request_path, preserve_host, upstream_url, built_in, created_at`,
	dest: func(r *apiRow) []any {
		a := &r.api
		return []any{&a.ID, &a.Name, &a.RequestHost, &a.RequestPath, &a.StripPath, &a.PreserveHost, &a.UpstreamURL, &a.BuiltIn, &r.created}
	},
	done: func(r *apiRow) { r.api.CreatedAt = fromMillis(r.created) },
}

// APIFilter selects APIs; empty fields select all.
type APIFilter struct {
	ID, Name, RequestHost, RequestPath, UpstreamURL string
	BuiltIn                                         bool // the platform's own, and only those
}

func (f *APIFilter) where() (w where) {
	w.and("built_in = ", f.BuiltIn)
	w.equal("id", f.ID)
	w.equal("name", f.Name)
	w.equal("request_host", f.RequestHost)
	w.equal("request_path", f.RequestPath)
	w.equal("upstream_url", f.UpstreamURL)
	return w
}

// APIs lists registered APIs, oldest first.
func (s *Store) APIs(ctx context.Context, f APIFilter, page Cursor) (Listing[freshet.API], error) {
	rows, err := apis.list(s.reader(ctx), f.where(), page, func(r *apiRow) string { return r.api.ID })
	return Listing[freshet.API]{Items: apisOf(rows.Items), Total: rows.Total}, err
}

// APIsSince returns the APIs, built-in ones too, that changed after the revision.
func (s *Store) APIsSince(ctx context.Context, revision int64) ([]freshet.API, error) {
	rows, err := apis.since(s.reader(ctx), revision)
	return apisOf(rows), err
}

func apisOf(rows []apiRow) []freshet.API {
	all := make([]freshet.API, len(rows))
	for i := range rows {
		all[i] = rows[i].api
	}
	return all
}

// API returns the API with the identifier or, if ref is none, with the name.
func (s *Store) API(ctx context.Context, ref string) (*freshet.API, error) {
	return s.reader(ctx).api(ref)
}

// API is Store.API inside the transaction.
func (tx *Tx) API(ref string) (*freshet.API, error) { return tx.api(ref) }

func (c conn) api(ref string) (*freshet.API, error) {
	var w where
	if freshet.IsID(ref) {
		w.equal("id", ref)
	} else {
		w.equal("name", ref)
	}
	row, err := apis.one(c, w)
	if err != nil {
		return nil, err
	}
	return &row.api, nil
}

// APIWith returns the API other than exceptID that has the value in the column, one of name, request_host and
// request_path.
func (tx *Tx) APIWith(column, value, exceptID string) (*freshet.API, error) {
	if value == "" {
		return nil, notFound("API")
	}
	var w where
	w.equal(column, value)
	w.and("id <> ", exceptID)
	row, err := apis.one(tx.conn, w)
	if err != nil {
		return nil, err
	}
	return &row.api, nil
}

// CreateAPI adds the API.
func (tx *Tx) CreateAPI(a *freshet.API, revision int64) error {
	return tx.write("API", `INSERT INTO gateway_apis (id, revision, name, request_host, request_path, strip_request_path,
			preserve_host, upstream_url, built_in, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, FALSE, $9)`,
		a.ID, revision, a.Name, a.RequestHost, a.RequestPath, a.StripPath, a.PreserveHost, a.UpstreamURL, millis(a.CreatedAt))
}

// SaveAPI replaces everything but the identifier and the time of creation.
func (tx *Tx) SaveAPI(a *freshet.API, revision int64) error {
	return tx.write("API", `UPDATE gateway_apis SET revision = $2, name = $3, request_host = $4, request_path = $5,
			strip_request_path = $6, preserve_host = $7, upstream_url = $8 WHERE id = $1`,
		a.ID, revision, a.Name, a.RequestHost, a.RequestPath, a.StripPath, a.PreserveHost, a.UpstreamURL)
}

// DeleteAPI takes the API's plugins along. Built-in ones stay.
func (tx *Tx) DeleteAPI(id string) error {
	return tx.write("API", `DELETE FROM gateway_apis WHERE id = $1 AND built_in = FALSE`, id)
}

type pluginRow struct {
	plugin  freshet.Plugin
	config  string
	created int64
}

var plugins = registration[pluginRow]{
	noun: "plugin", table: "gateway_plugins",
	columns: `id, api_id, consumer_id, name, config, enabled, created_at`,
	dest: func(r *pluginRow) []any {
		p := &r.plugin
		return []any{&p.ID, &p.APIID, &p.ConsumerID, &p.Name, &r.config, &p.Enabled, &r.created}
	},
	done: func(r *pluginRow) {
		r.plugin.Config, r.plugin.CreatedAt = json.RawMessage(r.config), fromMillis(r.created)
	},
}

// PluginFilter selects plugins; empty fields select all.
type PluginFilter struct{ ID, Name, APIID, ConsumerID string }

func (f *PluginFilter) where() (w where) {
	w.equal("id", f.ID)
	w.equal("name", f.Name)
	w.equal("api_id", f.APIID)
	w.equal("consumer_id", f.ConsumerID)
	return w
}

// Plugins lists plugins, oldest first.
func (s *Store) Plugins(ctx context.Context, f PluginFilter, page Cursor) (Listing[freshet.Plugin], error) {
	rows, err := plugins.list(s.reader(ctx), f.where(), page, func(r *pluginRow) string { return r.plugin.ID })
	return Listing[freshet.Plugin]{Items: pluginsOf(rows.Items), Total: rows.Total}, err
}

// PluginsSince returns the plugins that changed after the revision.
func (s *Store) PluginsSince(ctx context.Context, revision int64) ([]freshet.Plugin, error) {
	rows, err := plugins.since(s.reader(ctx), revision)
	return pluginsOf(rows), err
}

func pluginsOf(rows []pluginRow) []freshet.Plugin {
	all := make([]freshet.Plugin, len(rows))
	for i := range rows {
		all[i] = rows[i].plugin
	}
	return all
}

// Plugin returns the one plugin that matches.
func (s *Store) Plugin(ctx context.Context, f PluginFilter) (*freshet.Plugin, error) {
	return s.reader(ctx).plugin(f.where())
}

// Plugin is Store.Plugin inside the transaction.
func (tx *Tx) Plugin(f PluginFilter) (*freshet.Plugin, error) { return tx.plugin(f.where()) }

// PluginLike returns the plugin of the same name, API and consumer, if there is one with another identifier.
func (tx *Tx) PluginLike(p *freshet.Plugin) (*freshet.Plugin, error) {
	f := PluginFilter{Name: p.Name, APIID: p.APIID}
	w := f.where()
	w.and("consumer_id = ", p.ConsumerID)
	w.and("id <> ", p.ID)
	return tx.plugin(w)
}

func (c conn) plugin(w where) (*freshet.Plugin, error) {
	row, err := plugins.one(c, w)
	if err != nil {
		return nil, err
	}
	return &row.plugin, nil
}

// CreatePlugin adds the plugin.
func (tx *Tx) CreatePlugin(p *freshet.Plugin, revision int64) error {
	return tx.write("API", `INSERT INTO gateway_plugins (id, revision, api_id, consumer_id, name, config, enabled, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		p.ID, revision, p.APIID, p.ConsumerID, p.Name, string(p.Config), p.Enabled, millis(p.CreatedAt))
}

// SavePlugin replaces consumer, configuration and whether it is enabled.
func (tx *Tx) SavePlugin(p *freshet.Plugin, revision int64) error {
	return tx.write("plugin", `UPDATE gateway_plugins SET revision = $2, consumer_id = $3, config = $4, enabled = $5 WHERE id = $1`,
		p.ID, revision, p.ConsumerID, string(p.Config), p.Enabled)
}

// DeletePlugin takes the plugin away.
func (tx *Tx) DeletePlugin(id string) error {
	return tx.write("plugin", `DELETE FROM gateway_plugins WHERE id = $1`, id)
}
