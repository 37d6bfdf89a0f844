package gateway

import (
	"net/http"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
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

func keyID(c *freshet.Credential) string { return c.ID }

func (a *Administration) listKeys(c *call) (reply, error) {
	owner, err := a.store.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return reply{}, err
	}
	var f store.CredentialFilter
	var key string
	page, err := c.filters(map[string]*string{"id": &f.ID, "key": &key, "consumer_id": &f.ConsumerID})
	if err != nil {
		return reply{}, err
	}
	f.Key, f.ConsumerID = freshet.Key(key), owner.ID
	list, err := a.store.Credentials(c.ctx, f, page)
	if err != nil {
		return reply{}, err
	}
	return pageOf(c, page, list, keyID, showKey)
}

// key returns the one that the path names.
func (a *Administration) key(c *call) (*freshet.Credential, error) {
	owner, err := a.store.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return nil, err
	}
	id := c.vars[1]
	if !freshet.IsID(id) {
		return nil, faults{"id": id + " is an invalid uuid"}.err()
	}
	return a.store.Credential(c.ctx, store.CredentialFilter{ID: id, ConsumerID: owner.ID})
}

func (a *Administration) showKey(c *call) (reply, error) {
	found, err := a.key(c)
	if err != nil {
		return reply{}, err
	}
	return shown(showKey(found))
}

func (a *Administration) createKey(c *call) (reply, error) {
	owner, err := a.store.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return reply{}, err
	}
	made := &freshet.Credential{ID: freshet.NewID(), ConsumerID: owner.ID, CreatedAt: a.now()}
	if err := c.params.readKey(made); err != nil {
		return reply{}, err
	}
	err = a.register(c.ctx, func(tx *store.Tx, revision int64) error {
		if err := checkKeyFree(tx, made); err != nil {
			return err
		}
		return tx.CreateCredential(made, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return created(showKey(made))
}

// putKey replaces the key that the body names by id, or creates one.
func (a *Administration) putKey(c *call) (reply, error) {
	owner, err := a.store.Consumer(c.ctx, c.vars[0])
	if err != nil {
		return reply{}, err
	}
	id, _ := c.params["id"].(string)
	if freshet.IsID(id) {
		old, err := a.store.Credential(c.ctx, store.CredentialFilter{ID: id, ConsumerID: owner.ID})
		if err == nil {
			return a.saveKey(c, old.ID, whole)
		}
		if freshet.KindOf(err) != freshet.NotFound {
			return reply{}, err
		}
	}
	return a.createKey(c)
}

func (a *Administration) replaceKey(c *call) (reply, error) { return a.saveNamedKey(c, whole) }

func (a *Administration) patchKey(c *call) (reply, error) { return a.saveNamedKey(c, partial) }

func (a *Administration) saveNamedKey(c *call, e extent) (reply, error) {
	found, err := a.key(c)
	if err != nil {
		return reply{}, err
	}
	return a.saveKey(c, found.ID, e)
}

func (a *Administration) saveKey(c *call, id string, e extent) (reply, error) {
	var saved *freshet.Credential
	err := a.register(c.ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.Credential(store.CredentialFilter{ID: id}); err != nil {
			return err
		}
		if err := c.params.sameID(saved.ID); err != nil {
			return err
		}
		if err := c.params.fixed(map[string]string{"consumer_id": saved.ConsumerID}); err != nil {
			return err
		}
		if e == whole {
			saved.Key = ""
		}
		if err := c.params.readKey(saved); err != nil {
			return err
		}
		if err := checkKeyFree(tx, saved); err != nil {
			return err
		}
		return tx.SaveCredential(saved, revision)
	})
	if err != nil {
		return reply{}, err
	}
	return shown(showKey(saved))
}

func (a *Administration) deleteKey(c *call) (reply, error) {
	found, err := a.key(c)
	if err != nil {
		return reply{}, err
	}
	return gone(a.unregister(c.ctx, func(tx *store.Tx) error { return tx.DeleteCredential(found.ID) }))
}

// readKey makes a key where none is given.
func (p params) readKey(to *freshet.Credential) error {
	f := faults{}
	key := to.Key.Reveal()
	p.text("key", &key, f)
	p.onlyKnown(f, "id", "created_at", "key", "consumer_id")
	if !isHeaderValue(key) {
		f.add("key", "key has an invalid value")
	}
	to.Key = freshet.Key(key)
	if key == "" {
		to.Key = freshet.NewKey(freshet.SubscriberKey)
	}
	return f.err()
}

// checkKeyFree names a taken key like any other field: whoever sent it knows it.
func checkKeyFree(tx *store.Tx, c *freshet.Credential) error {
	other, err := tx.Credential(store.CredentialFilter{Key: c.Key})
	if err == nil && other.ID == c.ID {
		return nil
	}
	f := faults{}
	if err := taken(f, "key", c.Key.Reveal(), err); err != nil {
		return err
	}
	return f.errWith(http.StatusConflict)
}
