// Package registry has the rules of what is registered at the gateway: APIs, their plugins, consumers, and the keys by which
// consumers are known. It decides what may be registered, keeps it in the store and tells who follows it.
//
// A surface reads what a request says into Values, turns them into a typed change and hands it over; it gets a noun back, or an *Error
// that it puts into its own words. The package does not speak HTTP or SQL, and it runs no plugin: it only knows how each may be
// configured. A process that may not write hands changes to one that may, through Writer.
//
// A Registry is safe for concurrent use.
package registry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

// Notifier tells every node that something changed. The grid is one.
type Notifier interface {
	Notify(ctx context.Context, n grid.Notice) error
}

// Follower keeps something up to date with what is registered. The gateway's table is one.
type Follower interface {
	// CatchUp returns when everything up to the revision is in effect.
	CatchUp(ctx context.Context, revision int64) error
}

// Writer makes changes. A Registry is one; a process that may not write has another one, which asks a process that may.
type Writer interface {
	WriteAPI(ctx context.Context, w APIWrite) (*freshet.API, error)
	WritePlugin(ctx context.Context, w PluginWrite) (*freshet.Plugin, error)
	WriteConsumer(ctx context.Context, w ConsumerWrite) (*freshet.Consumer, error)
	WriteCredential(ctx context.Context, w CredentialWrite) (*freshet.Credential, error)
}

// Act is what is done to one thing that is registered.
type Act int

// The acts. Nodes tell each other acts by number.
const (
	Create  Act = iota // what is not given has its default
	Replace            // the same, in place of what is there
	Update             // what is not given stays as it is
	Delete
)

// Options are the settings that rules depend on.
type Options struct {
	Writer Writer // of a process that may not write; nil: it does so itself
	Barred Barred // no upstream may lead there
	Log    *slog.Logger
}

// Registry answers questions about what is registered, and changes it.
type Registry struct {
	// Static after New.
	store    *store.Store
	notifier Notifier
	writer   Writer
	barred   Barred
	log      *slog.Logger
	now      func() time.Time

	follower atomic.Pointer[Follower] // nil while nobody follows
}

// New makes a registry over an open store.
func New(s *store.Store, n Notifier, o Options) *Registry {
	return &Registry{store: s, notifier: n, writer: o.Writer, barred: o.Barred, log: o.Log,
		now: func() time.Time { return s.Now().Truncate(time.Millisecond) }} // what the store keeps
}

// Follow has the follower catch up with each change that is made here before the change is answered, until stop. There is
// one follower.
func (r *Registry) Follow(f Follower) (stop func()) {
	r.follower.Store(&f)
	return func() { r.follower.Store(nil) }
}

// register runs a change and waits until it is in effect here. act is given the revision that it makes.
func (r *Registry) register(ctx context.Context, act func(tx *store.Tx, revision int64) error) error {
	return r.change(ctx, (*store.Tx).Registering, act)
}

// unregister is register for a change that takes something away.
func (r *Registry) unregister(ctx context.Context, act func(tx *store.Tx) error) error {
	return r.change(ctx, (*store.Tx).Unregistering, func(tx *store.Tx, _ int64) error { return act(tx) })
}

func (r *Registry) change(ctx context.Context, begin func(*store.Tx) (int64, error), act func(*store.Tx, int64) error) error {
	var revision int64
	err := r.store.Update(ctx, func(tx *store.Tx) (err error) {
		if revision, err = begin(tx); err != nil {
			return err
		}
		return act(tx, revision)
	})
	if err != nil {
		return known(err)
	}
	r.changed(context.WithoutCancel(ctx), revision)
	return nil
}

// changed brings this node up to the revision before the change is answered, and tells the others.
func (r *Registry) changed(ctx context.Context, revision int64) {
	if f := r.follower.Load(); f != nil {
		if err := (*f).CatchUp(ctx, revision); err != nil {
			r.log.Warn("the change is stored, but not yet in effect here", "err", err)
		}
	}
	if err := r.notifier.Notify(ctx, grid.Notice{Scope: grid.ScopeGateway}); err != nil {
		r.log.Warn("notice not sent; other nodes learn of the change at their next look", "err", err)
	}
}

// Revision counts changes; see store.Revision.
type Revision = store.Revision

// Revision returns where the registrations stand.
func (r *Registry) Revision(ctx context.Context) (Revision, error) {
	return r.store.GatewayRevision(ctx)
}

// Rows is what was registered or changed after a revision.
type Rows struct {
	APIs        []freshet.API // built-in ones too
	Plugins     []freshet.Plugin
	Consumers   []freshet.Consumer
	Credentials []freshet.Credential
}

// Since reads what changed after the revision. What is newer than the newest revision may be among it, and is read again next
// time.
func (r *Registry) Since(ctx context.Context, revision int64) (rows Rows, err error) {
	if rows.APIs, err = r.store.APIsSince(ctx, revision); err != nil {
		return rows, err
	}
	if rows.Plugins, err = r.store.PluginsSince(ctx, revision); err != nil {
		return rows, err
	}
	if rows.Consumers, err = r.store.ConsumersSince(ctx, revision); err != nil {
		return rows, err
	}
	rows.Credentials, err = r.store.CredentialsSince(ctx, revision)
	return rows, err
}

// Totals is how many there are of each, without the platform's own APIs.
type Totals struct{ APIs, Plugins, Consumers, Credentials int64 }

// Totals counts what is registered.
func (r *Registry) Totals(ctx context.Context) (t Totals, err error) {
	one := Page{Size: 1}
	apis, err := r.APIs(ctx, APIFilter{}, one)
	if err != nil {
		return t, err
	}
	plugins, err := r.Plugins(ctx, PluginFilter{}, one)
	if err != nil {
		return t, err
	}
	consumers, err := r.Consumers(ctx, ConsumerFilter{}, one)
	if err != nil {
		return t, err
	}
	credentials, err := r.Credentials(ctx, CredentialFilter{}, one)
	return Totals{apis.Total, plugins.Total, consumers.Total, credentials.Total}, err
}
