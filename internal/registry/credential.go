package registry

import (
	"context"
	"slices"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// CredentialWrite is one change of one key of a consumer.
type CredentialWrite struct {
	Act        Act
	Consumer   string // whose, by identifier or user name
	Credential string // its identifier; empty to create one
	Change     CredentialChange
}

// CredentialChange is what a request says about a key; nil is not said. Texts are as they were sent.
type CredentialChange struct {
	ID         *string // may be repeated, not changed
	ConsumerID *string // the same; a new one takes no notice of it
	Key        *string

	Unreadable []Fault // what was said in a way that cannot be read
}

// Credential reads a change of a key.
func (v Values) Credential() CredentialChange {
	r := reader{values: v}
	c := CredentialChange{ID: r.raw("id"), ConsumerID: r.raw("consumer_id"), Key: r.text("key", notText)}
	r.onlyKnown("id", "created_at", "key", "consumer_id")
	c.Unreadable = r.faults
	return c
}

// Credential returns a key of the consumer, which is named by identifier or user name.
func (r *Registry) Credential(ctx context.Context, consumer, id string) (*freshet.Credential, error) {
	owner, err := r.Consumer(ctx, consumer)
	if err != nil {
		return nil, err
	}
	if !freshet.IsID(id) {
		f := faults{}
		f.say("id", notID, id)
		return nil, f.err(freshet.Invalid)
	}
	return found(r.store.Credential(ctx, CredentialFilter{ID: id, ConsumerID: owner.ID}))
}

const notID = "%s is an invalid uuid"

// Credentials lists keys, the oldest first.
func (r *Registry) Credentials(ctx context.Context, f CredentialFilter, p Page) (Listing[freshet.Credential], error) {
	list, err := r.store.Credentials(ctx, f, p.cursor())
	return pageOf(p, list, func(c *freshet.Credential) string { return c.ID }, err)
}

// WriteCredential implements Writer. It returns the key as it is now; nil for one that was deleted.
func (r *Registry) WriteCredential(ctx context.Context, w CredentialWrite) (*freshet.Credential, error) {
	if r.writer != nil {
		return r.writer.WriteCredential(ctx, w)
	}
	if w.Act == Create {
		return r.createCredential(ctx, &w)
	}
	old, err := r.Credential(ctx, w.Consumer, w.Credential)
	if err != nil {
		return nil, err
	}
	if w.Act == Delete {
		return nil, r.unregister(ctx, func(tx *store.Tx) error { return tx.DeleteCredential(old.ID) })
	}
	return r.saveCredential(ctx, old.ID, &w)
}

func (r *Registry) createCredential(ctx context.Context, w *CredentialWrite) (*freshet.Credential, error) {
	owner, err := r.Consumer(ctx, w.Consumer)
	if err != nil {
		return nil, err
	}
	made := &freshet.Credential{ID: freshet.NewID(), ConsumerID: owner.ID, CreatedAt: r.now()}
	if err := w.Change.apply(made); err != nil {
		return nil, err
	}
	return found(made, r.register(ctx, func(tx *store.Tx, revision int64) error {
		if err := checkKeyFree(tx, made); err != nil {
			return err
		}
		return tx.CreateCredential(made, revision)
	}))
}

func (r *Registry) saveCredential(ctx context.Context, id string, w *CredentialWrite) (*freshet.Credential, error) {
	var saved *freshet.Credential
	err := r.register(ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.Credential(CredentialFilter{ID: id}); err != nil {
			return err
		}
		if err := sameID(w.Change.ID, saved.ID); err != nil {
			return err
		}
		f := faults{}
		if f.unchanged("consumer_id", w.Change.ConsumerID, saved.ConsumerID); len(f) > 0 {
			return f.err(freshet.Invalid)
		}
		if w.Act == Replace {
			saved.Key = ""
		}
		if err := w.Change.apply(saved); err != nil {
			return err
		}
		if err := checkKeyFree(tx, saved); err != nil {
			return err
		}
		return tx.SaveCredential(saved, revision)
	})
	return found(saved, err)
}

// apply puts the change into a credential and makes a key where there is none.
func (c *CredentialChange) apply(to *freshet.Credential) error {
	f := faults(slices.Clone(c.Unreadable))
	key := to.Key.Reveal()
	f.text("key", c.Key, &key)
	if !isHeaderValue(key) {
		f.add("key", invalid)
	}
	to.Key = freshet.Key(key)
	if key == "" {
		to.Key = freshet.NewKey(freshet.SubscriberKey)
	}
	return f.err(freshet.Invalid)
}

// checkKeyFree names a taken key like any other field: whoever sent it knows it.
func checkKeyFree(tx *store.Tx, c *freshet.Credential) error {
	other, err := tx.Credential(CredentialFilter{Key: c.Key})
	if err == nil && other.ID == c.ID {
		return nil
	}
	f := faults{}
	if err := f.taken("key", c.Key.Reveal(), err); err != nil {
		return err
	}
	return f.err(freshet.Conflict)
}
