package kong

import (
	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// apiBody is an API as the dialect shows it.
type apiBody struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	RequestHost  string `json:"request_host,omitempty"`
	RequestPath  string `json:"request_path,omitempty"`
	StripPath    bool   `json:"strip_request_path"`
	PreserveHost bool   `json:"preserve_host"`
	UpstreamURL  string `json:"upstream_url"`
	BuiltIn      bool   `json:"built_in,omitempty"`
	CreatedAt    int64  `json:"created_at"`
}

func showAPI(a *freshet.API) apiBody {
	b := apiBody{a.ID, a.Name, a.RequestHost, a.RequestPath, a.StripPath, a.PreserveHost, a.UpstreamURL, a.BuiltIn, 0}
	if !a.CreatedAt.IsZero() {
		b.CreatedAt = a.CreatedAt.UnixMilli()
	}
	return b
}

func (h *Handler) listAPIs(c *call) (response, error) {
	filter, page, err := c.values.APIFilter()
	if err != nil {
		return response{}, err
	}
	list, err := h.Registry.APIs(c.ctx, filter, page)
	return pageOf(c, page, list, showAPI, err)
}

func (h *Handler) showAPI(c *call) (response, error) {
	found, err := h.Registry.API(c.ctx, c.vars[0])
	if err != nil {
		return response{}, err
	}
	return shown(showAPI(found))
}

// putAPI replaces the API that the body names by identifier, or creates one.
func (h *Handler) putAPI(c *call) (response, error) {
	id, ok := c.values.ID()
	if !ok {
		return h.createAPI(c)
	}
	switch _, err := h.Registry.API(c.ctx, id); {
	case freshet.KindOf(err) == freshet.NotFound:
		return h.createAPI(c)
	case err != nil:
		return response{}, err
	}
	return h.writeAPI(c, registry.Replace, id)
}

func (h *Handler) createAPI(c *call) (response, error) { return h.writeAPI(c, registry.Create, "") }
func (h *Handler) replaceAPI(c *call) (response, error) {
	return h.writeAPI(c, registry.Replace, c.vars[0])
}
func (h *Handler) updateAPI(c *call) (response, error) {
	return h.writeAPI(c, registry.Update, c.vars[0])
}
func (h *Handler) deleteAPI(c *call) (response, error) {
	return h.writeAPI(c, registry.Delete, c.vars[0])
}

func (h *Handler) writeAPI(c *call, act registry.Act, ref string) (response, error) {
	w := registry.APIWrite{Act: act, API: ref}
	if act != registry.Delete {
		w.Change = c.values.API()
	}
	saved, err := h.Registry.WriteAPI(c.ctx, w)
	return written(act, saved, showAPI, err)
}
