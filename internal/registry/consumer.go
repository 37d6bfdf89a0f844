package registry

import (
	"context"
	"slices"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/store"
)

// ConsumerWrite is one change of one consumer.
type ConsumerWrite struct {
	Act      Act
	Consumer string // its identifier or user name; empty to create one
	Change   ConsumerChange
}

// ConsumerChange is what a request says about a consumer; nil is not said. Texts are as they were sent.
type ConsumerChange struct {
	ID                 *string // may be repeated, not changed
	Username, CustomID *string

	Unreadable []Fault // what was said in a way that cannot be read
}

// Consumer reads a change of a consumer.
func (v Values) Consumer() ConsumerChange {
	r := reader{values: v}
	c := ConsumerChange{ID: r.raw("id"), Username: r.text("username", notText), CustomID: r.text("custom_id", notText)}
	r.onlyKnown("id", "created_at", "username", "custom_id")
	c.Unreadable = r.faults
	return c
}

// Consumer returns the consumer with the identifier or, if ref is none, with the user name.
func (r *Registry) Consumer(ctx context.Context, ref string) (*freshet.Consumer, error) {
	return found(r.store.Consumer(ctx, ref))
}

// Consumers lists consumers, the oldest first.
func (r *Registry) Consumers(ctx context.Context, f ConsumerFilter, p Page) (Listing[freshet.Consumer], error) {
	list, err := r.store.Consumers(ctx, f, p.cursor())
	return pageOf(p, list, func(c *freshet.Consumer) string { return c.ID }, err)
}

// WriteConsumer implements Writer. It returns the consumer as it is now; nil for one that was deleted.
func (r *Registry) WriteConsumer(ctx context.Context, w ConsumerWrite) (*freshet.Consumer, error) {
	switch {
	case r.writer != nil:
		return r.writer.WriteConsumer(ctx, w)
	case w.Act == Create:
		return r.createConsumer(ctx, &w.Change)
	case w.Act == Delete:
		return nil, r.unregister(ctx, func(tx *store.Tx) error {
			old, err := tx.Consumer(w.Consumer)
			if err != nil {
				return err
			}
			return tx.DeleteConsumer(old.ID)
		})
	}
	return r.saveConsumer(ctx, &w)
}

func (r *Registry) createConsumer(ctx context.Context, c *ConsumerChange) (*freshet.Consumer, error) {
	made := &freshet.Consumer{ID: freshet.NewID(), CreatedAt: r.now()}
	if err := c.apply(made, Create); err != nil {
		return nil, err
	}
	return found(made, r.register(ctx, func(tx *store.Tx, revision int64) error {
		if err := checkConsumerFree(tx, made); err != nil {
			return err
		}
		return tx.CreateConsumer(made, revision)
	}))
}

func (r *Registry) saveConsumer(ctx context.Context, w *ConsumerWrite) (*freshet.Consumer, error) {
	var saved *freshet.Consumer
	err := r.register(ctx, func(tx *store.Tx, revision int64) (err error) {
		if saved, err = tx.Consumer(w.Consumer); err != nil {
			return err
		}
		if err := sameID(w.Change.ID, saved.ID); err != nil {
			return err
		}
		if w.Act == Replace {
			saved = &freshet.Consumer{ID: saved.ID, CreatedAt: saved.CreatedAt}
		}
		if err := w.Change.apply(saved, w.Act); err != nil {
			return err
		}
		if err := checkConsumerFree(tx, saved); err != nil {
			return err
		}
		return tx.SaveConsumer(saved, revision)
	})
	return found(saved, err)
}

const needName = "At least a 'custom_id' or a 'username' must be specified"

// apply puts the change into a consumer and checks the outcome.
func (c *ConsumerChange) apply(to *freshet.Consumer, act Act) error {
	f := faults(slices.Clone(c.Unreadable))
	f.text("username", c.Username, &to.Username)
	f.text("custom_id", c.CustomID, &to.CustomID)
	if to.Username == "" && to.CustomID == "" {
		f.need(act, needName, map[string]*string{"username": c.Username, "custom_id": c.CustomID})
	}
	for name, value := range map[string]string{"username": to.Username, "custom_id": to.CustomID} {
		if !isHeaderValue(value) {
			f.add(name, invalid)
		}
	}
	return f.err(freshet.Invalid)
}

func checkConsumerFree(tx *store.Tx, c *freshet.Consumer) error {
	f := faults{}
	for _, n := range []struct{ column, value string }{{"username", c.Username}, {"custom_id", c.CustomID}} {
		_, err := tx.ConsumerWith(n.column, n.value, c.ID)
		if err := f.taken(n.column, n.value, err); err != nil {
			return err
		}
	}
	return f.err(freshet.Conflict)
}
