package gateway

import (
	"net/http"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
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

func consumerID(c *freshet.Consumer) string { return c.ID }

func (a *Administration) listConsumers(c *call) (reply, error) {
	var f store.ConsumerFilter
	page, err := c.filters(map[string]*string{"id": &f.ID, "username": &f.Username, "custom_id": &f.CustomID})
	if err != nil {
		return reply{}, err
	}
	list, err := a.store.Consumers(c.ctx, f, page)
	if err != nil {
		return reply{}, err
	}
	return pageOf(c, page, list, consumerID, showConsumer)
}

func (a *Administration) showConsumer(c *call) (reply, error) {
	found, err := a.store.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return reply{}, err
	}
	return shown(showConsumer(found))
}

func (a *Administration) createConsumer(c *call) (reply, error) {
	made := &freshet.Consumer{ID: freshet.NewID(), CreatedAt: a.now()}
	if err := c.params.readConsumer(made, whole); err != nil {
		return reply{}, err
	}
	err := a.register(c.ctx, func(tx *store.Tx, revision int64) error {
		if err := checkNamesFree(tx, made); err != nil {
			return err
		}
		return tx.CreateConsumer(made, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return created(showConsumer(made))
}

// putConsumer replaces the consumer that the body names by id, or creates one.
func (a *Administration) putConsumer(c *call) (reply, error) {
	old, err := existing(c, a.store.Consumer)
	if err != nil {
		return reply{}, err
	}
	if old == nil {
		return a.createConsumer(c)
	}
	return a.saveConsumer(c, old.ID, whole)
}

func (a *Administration) replaceConsumer(c *call) (reply, error) {
	return a.saveConsumer(c, c.vars[0], whole)
}

func (a *Administration) patchConsumer(c *call) (reply, error) {
	return a.saveConsumer(c, c.vars[0], partial)
}

func (a *Administration) saveConsumer(c *call, ref string, e extent) (reply, error) {
	var saved *freshet.Consumer
	err := a.register(c.ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.Consumer(ref); err != nil {
			return err
		}
		if err := c.params.sameID(saved.ID); err != nil {
			return err
		}
		if e == whole {
			saved = &freshet.Consumer{ID: saved.ID, CreatedAt: saved.CreatedAt}
		}
		if err := c.params.readConsumer(saved, e); err != nil {
			return err
		}
		if err := checkNamesFree(tx, saved); err != nil {
			return err
		}
		return tx.SaveConsumer(saved, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return shown(showConsumer(saved))
}

func (a *Administration) deleteConsumer(c *call) (reply, error) {
	return gone(a.unregister(c.ctx, func(tx *store.Tx) error {
		found, err := tx.Consumer(c.vars[0])
		if err != nil {
			return err
		}
		return tx.DeleteConsumer(found.ID)
	}))
}

const needName = "At least a 'custom_id' or a 'username' must be specified"

func (p params) readConsumer(to *freshet.Consumer, e extent) error {
	f := faults{}
	p.text("username", &to.Username, f)
	p.text("custom_id", &to.CustomID, f)
	p.onlyKnown(f, "id", "created_at", "username", "custom_id")
	if to.Username == "" && to.CustomID == "" {
		p.need(f, e, needName, "username", "custom_id")
	}
	for name, value := range map[string]string{"username": to.Username, "custom_id": to.CustomID} {
		if !isHeaderValue(value) {
			f.add(name, "%s has an invalid value", name)
		}
	}
	return f.err()
}

// isHeaderValue reports whether upstreams can be told: names travel in headers.
func isHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

func checkNamesFree(tx *store.Tx, c *freshet.Consumer) error {
	f := faults{}
	for _, n := range []struct{ column, value string }{{"username", c.Username}, {"custom_id", c.CustomID}} {
		_, err := tx.ConsumerWith(n.column, n.value, c.ID)
		if err := taken(f, n.column, n.value, err); err != nil {
			return err
		}
	}
	return f.errWith(http.StatusConflict)
}
