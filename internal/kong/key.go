package kong

import (
	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// keyBody is a consumer's key, shown to the operator who manages it.
type keyBody struct {
	ID         string `json:"id"`
	ConsumerID string `json:"consumer_id"`
	Key        string `json:"key"`
	CreatedAt  int64  `json:"created_at"`
}

func showKey(c *freshet.Credential) keyBody {
	return keyBody{c.ID, c.ConsumerID, c.Key.Reveal(), c.CreatedAt.UnixMilli()}
}

func (h *Handler) listKeys(c *call) (response, error) {
	owner, err := h.Registry.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return response{}, err
	}
	filter, page, err := c.values.CredentialFilter()
	if err != nil {
		return response{}, err
	}
	filter.ConsumerID = owner.ID
	list, err := h.Registry.Credentials(c.ctx, filter, page)
	return pageOf(c, page, list, showKey, err)
}

func (h *Handler) showKey(c *call) (response, error) {
	found, err := h.Registry.Credential(c.ctx, c.vars[0], c.vars[1])
	if err != nil {
		return response{}, err
	}
	return shown(showKey(found))
}

// putKey replaces the key that the body names by identifier, or creates one.
func (h *Handler) putKey(c *call) (response, error) {
	id, ok := c.values.ID()
	if !ok {
		return h.createKey(c)
	}
	switch _, err := h.Registry.Credential(c.ctx, c.vars[0], id); {
	case freshet.KindOf(err) == freshet.NotFound:
		return h.createKey(c) // which says so if it is the consumer that does not exist
	case err != nil:
		return response{}, err
	}
	return h.writeKey(c, registry.Replace, id)
}

func (h *Handler) createKey(c *call) (response, error) { return h.writeKey(c, registry.Create, "") }
func (h *Handler) replaceKey(c *call) (response, error) {
	return h.writeKey(c, registry.Replace, c.vars[1])
}
func (h *Handler) updateKey(c *call) (response, error) {
	return h.writeKey(c, registry.Update, c.vars[1])
}
func (h *Handler) deleteKey(c *call) (response, error) {
	return h.writeKey(c, registry.Delete, c.vars[1])
}

func (h *Handler) writeKey(c *call, act registry.Act, id string) (response, error) {
	w := registry.CredentialWrite{Act: act, Consumer: c.vars[0], Credential: id}
	if act != registry.Delete {
		w.Change = c.values.Credential()
	}
	saved, err := h.Registry.WriteCredential(c.ctx, w)
	return written(act, saved, showKey, err)
}
