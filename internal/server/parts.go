package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/gateway"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/manage"
	"github.com/freshet-io/freshet/internal/poll"
	"github.com/freshet-io/freshet/internal/publish"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/subscribe"
)

// parts are what a process is made of. Each is made by its stage, after those it stands on, and is nil before that
// and where no role needs it.
type parts struct {
	// Static after wire.
	settings *settings.Settings
	log      *slog.Logger
	version  string

	// Owned by the stages.
	store      *store.Store
	grid       *grid.Memory
	router     *router.Router
	catalog    *catalog.Catalog
	fanout     *fanout.Fanout
	subscriber *subscribe.Server
	poller     *poll.Poller
}

func (p *parts) openStore(ctx context.Context) (err error) {
	p.store, err = store.Open(ctx, store.Location{URL: p.settings.Database.Reveal(), Dir: p.settings.Data})
	return err
}

func (p *parts) openGrid(context.Context) error {
	p.grid = grid.NewMemory(grid.MemoryOptions{MessageTTL: p.settings.Grid.MessageTTL})
	return nil
}

func (p *parts) openRouter(context.Context) error {
	p.router = router.New(p.grid, router.Options{Log: p.log, MessageTTL: p.settings.Grid.MessageTTL})
	return nil
}

func (p *parts) openCatalog(ctx context.Context) (err error) {
	s := p.settings
	p.catalog, err = catalog.New(ctx, p.store, p.grid, catalog.Options{
		Production:    s.Environment == settings.Production,
		OpenSignUp:    s.Signup == settings.SignupOpen,
		TokenLifetime: s.Token.Lifetime,
		TokenSecret:   []byte(s.Token.Secret.Reveal()),
		AdminEmail:    s.Admin.Email,
		AdminPassword: s.Admin.Password,
		Quotas: freshet.Quotas{
			Connections:       s.Quotas.Connections,
			MessagesPerMonth:  s.Quotas.MessagesPerMonth,
			RequestsPerMinute: s.Manage.RequestsPerMinute,
		},
		Documents: p.router,
		Log:       p.log,
	})
	return err
}

// gateway returns what the gateway listener answers: the APIs whose roles are here.
func (p *parts) gateway() (http.Handler, error) {
	var apis []gateway.API
	if p.settings.Has(settings.RoleManage) {
		h, err := manage.New(manage.Options{
			Catalog:           p.catalog,
			Documents:         p.router,
			Counter:           p.grid,
			RequestsPerMinute: p.settings.Manage.RequestsPerMinute,
			Log:               p.log,
		})
		if err != nil {
			return nil, err
		}
		apis = append(apis, gateway.API{Name: "api", Version: "v1", Handler: h})
	}
	if p.settings.Has(settings.RolePublish) {
		h, err := publish.New(p.log, p.catalog, p.router, publish.Options{
			MaxBody:   int64(p.settings.Publish.MaxBody),
			Counter:   p.grid,
			PerMinute: p.settings.Publish.RequestsPerMinute,
		})
		if err != nil {
			return nil, err
		}
		apis = append(apis, gateway.API{Name: "publish", Version: "v1", Handler: h})
	}
	return gateway.New(p.log, p.settings.TrustedProxies, apis...), nil
}

func (p *parts) openSubscriber(context.Context) (err error) {
	s := &p.settings.Subscriber
	p.fanout, err = fanout.New(fanout.Options{Log: p.log, Heartbeat: s.Heartbeat, WriteTimeout: s.WriteTimeout})
	if err != nil {
		return err
	}
	p.subscriber = subscribe.New(
		subscribe.Parts{Log: p.log, Catalog: p.catalog, Router: p.router, Fanout: p.fanout, Notices: p.grid, Sources: p.grid},
		subscribe.Options{SnapshotEvent: s.SnapshotEvent, SnapshotTimeout: s.SnapshotTimeout})
	return nil
}

func (p *parts) closeSubscriber(context.Context) error {
	err := p.fanout.Close()
	if err2 := p.subscriber.Close(); err == nil {
		err = err2
	}
	return err
}

func (p *parts) openPoller(context.Context) error {
	s := &p.settings.Poller
	p.poller = poll.New(
		poll.Parts{Log: p.log, Catalog: p.catalog, Router: p.router, Grid: p.grid},
		poll.Options{
			Version:         p.version,
			DenyPrivate:     s.DenyPrivate || p.settings.Environment == settings.Production,
			ErrorThreshold:  int(max(1, s.ErrorThreshold)),
			HostConcurrency: int(s.HostConcurrency),
			Concurrency:     int(s.Concurrency),
			MessageTTL:      p.settings.Grid.MessageTTL,
		})
	return nil
}
