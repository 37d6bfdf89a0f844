package kong

import (
	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// consumerBody is a consumer as the dialect shows it: never with keys.
type consumerBody struct {
	ID        string `json:"id"`
	Username  string `json:"username,omitempty"`
	CustomID  string `json:"custom_id,omitempty"`
	CreatedAt int64  `json:"created_at"`
}

func showConsumer(c *freshet.Consumer) consumerBody {
	return consumerBody{c.ID, c.Username, c.CustomID, c.CreatedAt.UnixMilli()}
}

func (h *Handler) listConsumers(c *call) (response, error) {
	filter, page, err := c.values.ConsumerFilter()
	if err != nil {
		return response{}, err
	}
	list, err := h.Registry.Consumers(c.ctx, filter, page)
	return pageOf(c, page, list, showConsumer, err)
}

func (h *Handler) showConsumer(c *call) (response, error) {
	found, err := h.Registry.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return response{}, err
	}
	return shown(showConsumer(found))
}

// putConsumer replaces the consumer that the body names by identifier, or creates one.
func (h *Handler) putConsumer(c *call) (response, error) {
	id, ok := c.values.ID()
	if !ok {
		return h.createConsumer(c)
	}
	switch _, err := h.Registry.Consumer(c.ctx, id); {
	case freshet.KindOf(err) == freshet.NotFound:
		return h.createConsumer(c)
	case err != nil:
		return response{}, err
	}
	return h.writeConsumer(c, registry.Replace, id)
}

func (h *Handler) createConsumer(c *call) (response, error) {
	return h.writeConsumer(c, registry.Create, "")
}

func (h *Handler) replaceConsumer(c *call) (response, error) {
	return h.writeConsumer(c, registry.Replace, c.vars[0])
}

func (h *Handler) updateConsumer(c *call) (response, error) {
	return h.writeConsumer(c, registry.Update, c.vars[0])
}

func (h *Handler) deleteConsumer(c *call) (response, error) {
	return h.writeConsumer(c, registry.Delete, c.vars[0])
}

func (h *Handler) writeConsumer(c *call, act registry.Act, ref string) (response, error) {
	w := registry.ConsumerWrite{Act: act, Consumer: ref}
	if act != registry.Delete {
		w.Change = c.values.Consumer()
	}
	saved, err := h.Registry.WriteConsumer(c.ctx, w)
	return written(act, saved, showConsumer, err)
}
