package server

import (
	"context"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/console"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/gateway"
	"github.com/freshet-io/freshet/internal/grid/natsserver"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/kong"
	"github.com/freshet-io/freshet/internal/manage"
	"github.com/freshet-io/freshet/internal/poll"
	"github.com/freshet-io/freshet/internal/publish"
	"github.com/freshet-io/freshet/internal/registry"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/subscribe"
	"github.com/freshet-io/freshet/internal/trace"
	"github.com/freshet-io/freshet/internal/usage"
	"github.com/freshet-io/freshet/internal/wire"
)

// parts are what a process is made of. Each is made by its stage, after those it stands on, and is nil before that
// and where no role needs it.
type parts struct {
	// Static after wire.
	settings *settings.Settings
	version  string
	node     string // what this process is called
	ports    *ports
	edition  freshet.Edition
	log      *slog.Logger
	health   *readiness
	streams  *httpkit.Streams // of HTTP/2, on all listeners
	budget   budget

	// Owned by the stages.
	tracer     *trace.Tracer // nil: nothing is traced
	store      *store.Store
	usage      *usage.Meter
	storage    *usage.Storage
	grid       *countedGrid
	nats       *natsserver.Server // embedded; nil without one
	router     *router.Router
	catalog    *catalog.Catalog
	fanout     *fanout.Fanout
	addresses  *wire.AddressLimit // of the subscriber listener
	subscriber *subscribe.Server
	poller     *poll.Poller
	tester     *poll.Tester // nil without the manage role
	publisher  *publish.API
	gateway    *gateway.Gateway
	registry   *registry.Registry // nil without the roles gateway and manage
	follower   *gateway.Follower  // nil without the gateway role

	administration later // of the gateway

	quiet []func() // end the answers to other nodes

	stopReviews   func() // ends the interest of storage in notices
	stopFollowing func() // ends the interest of the follower in changes
}

// answer begins to answer what other nodes ask, as far as the roles of this one can.
func (p *parts) answer(context.Context) error {
	add := func(stop func()) { p.quiet = append(p.quiet, stop) }
	if p.router != nil {
		add(answerTo(p.grid, askLately, func(_ context.Context, topicID string) (router.Lately, error) {
			return p.router.Lately(topicID), nil
		}))
	}
	if p.usage != nil {
		add(answerTo(p.grid, askFlush, func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, p.usage.Flush(ctx) }))
	}
	if p.subscriber != nil {
		add(answerForStreams(p.grid, p.fanout.Node(), p.subscriber))
	}
	if p.settings.Has(settings.RoleManage) {
		add(p.answerWriters())
	}
	return nil
}

// stopAnswering comes before anything that answers are about is closed.
func (p *parts) stopAnswering(context.Context) error {
	for _, stop := range p.quiet {
		stop()
	}
	p.quiet = nil
	return nil
}

// reads reports whether the process leaves it to others to make what a database must have. An embedded one has no others.
func (p *parts) reads() bool {
	return !p.settings.Has(settings.RoleManage) && p.settings.Database != ""
}

// storePatience is how long a process that starts waits for its database: as long as for NATS.
const storePatience = time.Minute

func (p *parts) openStore(ctx context.Context) (err error) {
	p.store, err = store.Open(ctx, store.Location{
		URL: p.settings.Database.Reveal(), Dir: p.settings.Data, Reader: p.reads(), Patience: storePatience, Log: p.log,
	})
	return err
}

func (p *parts) openUsage(context.Context) error {
	o := usage.Options{Log: p.log, Retention: p.settings.Usage.Retention}
	if p.reads() {
		o.Write = writer{p.grid}.addUsage
	}
	p.usage = usage.New(p.store, o)
	p.storage = usage.NewStorage(usage.StorageOptions{Documents: p.grid, Topics: p.store, Alone: p.settings.NATS == "", Log: p.log})
	p.stopReviews = p.grid.OnNotice(p.storage.Review)
	return nil
}

func (p *parts) closeUsage(ctx context.Context) error {
	p.stopReviews()
	return p.usage.Close(ctx)
}

// quotaOfGrant and quotaOfSource are what limits the documents of whoever publishes. Most have no limit, and cost nothing.
func (p *parts) quotaOfGrant(g *catalog.Grant) router.Quota {
	return p.quotaOf(usage.Quotas{AppID: g.AppID, UserID: g.UserID, AppBytes: g.AppQuotas.DocumentBytes, UserBytes: g.Quotas.DocumentBytes})
}

func (p *parts) quotaOfSource(s *catalog.Source) router.Quota {
	return p.quotaOf(usage.Quotas{AppID: s.Topic.AppID, UserID: s.UserID, AppBytes: s.AppQuotas.DocumentBytes, UserBytes: s.Quotas.DocumentBytes})
}

func (p *parts) quotaOf(q usage.Quotas) router.Quota {
	if !q.Limits() {
		return nil
	}
	return p.storage.Room(q)
}

// countPublication and countPoll tell the meter what roles did.
func (p *parts) countPublication(g *catalog.Grant) {
	p.usage.Add(usage.Place{TopicID: g.Topic.ID, AppID: g.AppID, UserID: g.UserID}, freshet.Usage{Publications: 1})
}

func (p *parts) countPoll(q poll.Polled) {
	u := freshet.Usage{Polls: 1}
	if q.Published {
		u.Publications = 1
	}
	if q.NotModified {
		u.PollsNotModified = 1
	}
	if q.Failed {
		u.PollsFailed = 1
	}
	p.usage.Add(usage.Place{TopicID: q.TopicID, AppID: q.AppID, UserID: q.UserID}, u)
}

func (p *parts) openRouter(context.Context) error {
	p.router = router.New(p.grid, router.Options{
		Log: p.log, MessageTTL: p.settings.Grid.MessageTTL, MaxDocument: max(router.DefaultMaxDocument, int(p.settings.Publish.MaxBody)),
		Tracer: p.tracer, Memory: p.budget.held, GridCounts: p.settings.NATS == "", CacheBytes: p.budget.kept, Work: p.budget.work,
	})
	return nil
}

func (p *parts) openTracer(context.Context) error {
	s := &p.settings.Telemetry
	if s.Endpoint == "" {
		return nil
	}
	header, _ := settings.ParseHeaders(s.Headers.Reveal()) // checked when they were read
	p.tracer = trace.New(trace.Options{
		Endpoint: s.Endpoint, Header: header, Ratio: float64(s.SamplePercent) / 100, Version: p.version, Node: p.node, Log: p.log,
	})
	return nil
}

func (p *parts) closeTracer(ctx context.Context) error {
	if p.tracer == nil {
		return nil
	}
	return p.tracer.Close(ctx)
}

func (p *parts) openCatalog(ctx context.Context) (err error) {
	s := p.settings
	var remote catalog.Writer
	if p.reads() {
		remote = writer{p.grid}
	}
	o := catalog.Options{
		Production:    s.Environment == settings.Production,
		OpenSignUp:    s.Signup == settings.SignupOpen,
		Counter:       p.grid,
		Writer:        remote,
		TokenLifetime: s.Token.Lifetime,
		AdminEmail:    s.Admin.Email,
		AdminPassword: s.Admin.Password,
		Quotas: freshet.Quotas{
			Connections:       s.Quotas.Connections,
			MessagesPerMonth:  s.Quotas.MessagesPerMonth,
			RequestsPerMinute: s.Manage.RequestsPerMinute,
			Topics:            s.Quotas.Topics,
			DocumentBytes:     s.Quotas.DocumentBytes,
		},
		AppQuotas: freshet.Quotas{
			Connections:       s.Quotas.AppConnections,
			MessagesPerMonth:  s.Quotas.AppMessagesPerMonth,
			RequestsPerMinute: s.Publish.RequestsPerMinute,
			Topics:            s.Quotas.AppTopics,
			DocumentBytes:     s.Quotas.AppDocumentBytes,
		},
		SignUpsPerAddress: s.SignupsPerAddress(),
		ProvisionedTopics: s.Limits.TopicsPerApp,
		Documents:         p.router,
		Log:               p.log,
	}
	setSecrets(&o, s)
	p.catalog, err = catalog.New(ctx, p.store, p.grid, o)
	return err
}

func (p *parts) openRegistry(context.Context) error {
	o := registry.Options{Barred: p.barred(), Log: p.log}
	if p.reads() {
		o.Writer = writer{p.grid}
	}
	p.registry = registry.New(p.store, p.grid, o)
	return nil
}

// openGateway makes what the gateway listener answers: the APIs whose roles are here and, with the role of that name,
// everything that is registered.
func (p *parts) openGateway(ctx context.Context) error {
	apis, err := p.platformAPIs()
	if err != nil {
		return err
	}
	s := &p.settings.Gateway
	o := gateway.Options{Log: p.log, Proxies: p.settings.TrustedProxies, APIs: apis, Counter: p.grid, Barred: p.barred(),
		Timeouts: gateway.Timeouts{Connect: s.ConnectTimeout, Response: s.ResponseTimeout}}
	if p.settings.Has(settings.RoleGateway) {
		o.Remote = p.remoteAPIs()
	}
	if p.gateway, err = gateway.New(o); err != nil || !p.settings.Has(settings.RoleGateway) {
		return err
	}
	if p.follower, err = gateway.Follow(ctx, p.gateway, p.registry, p.grid, p.log); err != nil {
		return err
	}
	p.stopFollowing = p.registry.Follow(p.follower)
	node := gatewayNode{p.follower, p.gateway}
	p.administration.set(httpkit.Finish(kong.New(kong.Options{Registry: p.registry, Node: node, Version: p.version, Log: p.log})))
	return nil
}

// barred is where no upstream of the gateway may lead: in production, to the administration listener.
func (p *parts) barred() registry.Barred {
	if p.settings.Environment != settings.Production {
		return registry.Barred{}
	}
	return registry.Bar(p.ports.admin.Addr())
}

// registryOfGateway is for admins of the management API; nil where the gateway is elsewhere.
func (p *parts) registryOfGateway() *registry.Registry {
	if !p.settings.Has(settings.RoleGateway) {
		return nil
	}
	return p.registry
}

func (p *parts) closeGateway(context.Context) error {
	if p.follower != nil {
		p.stopFollowing()
		p.follower.Close()
	}
	p.gateway.Close()
	if p.tester != nil {
		p.tester.Close()
	}
	return nil
}

// remoteAPIs are the platform's own APIs that other processes answer.
func (p *parts) remoteAPIs() (remote []gateway.Remote) {
	for _, a := range []struct {
		role      settings.Role
		name, url string
	}{
		{settings.RoleManage, "api", p.settings.Gateway.ManageURL},
		{settings.RolePublish, "publish", p.settings.Gateway.PublishURL},
	} {
		if a.url != "" && !p.settings.Has(a.role) {
			remote = append(remote, gateway.Remote{Name: a.name, Version: "v1", URL: a.url})
		}
	}
	return remote
}

// platformAPIs are those whose roles are here.
func (p *parts) platformAPIs() (apis []gateway.API, err error) {
	if p.settings.Has(settings.RoleManage) {
		p.tester = poll.NewTester(p.router, p.pollOptions())
		h, err := manage.New(manage.Options{
			Catalog:           p.catalog,
			Documents:         p.router,
			Counter:           p.grid,
			Usage:             p.usageReport(),
			Topics:            p.everywhere(),
			Sources:           p.grid,
			Connections:       p.everywhere(),
			Tester:            p.tester,
			Health:            p.health,
			Registry:          p.registryOfGateway(),
			RequestsPerMinute: p.settings.Manage.RequestsPerMinute,
			Log:               p.log,
		})
		if err != nil {
			return nil, err
		}
		apis = append(apis, gateway.API{Name: "api", Version: "v1", Handler: h})
	}
	if p.settings.Has(settings.RolePublish) {
		p.publisher, err = publish.New(p.log, p.catalog, p.router, publish.Options{
			MaxBody: int64(p.settings.Publish.MaxBody),
			Counter: p.grid,
			Quota:   p.quotaOfGrant,
			Taken:   p.countPublication,
			Tracer:  p.tracer,
			Bodies:  p.budget.bodies,
		})
		if err != nil {
			return nil, err
		}
		apis = append(apis, gateway.API{Name: "publish", Version: "v1", Handler: p.publisher})
	}
	if p.settings.Has(settings.RoleManage) {
		h, err := p.console()
		if err != nil {
			return nil, err
		}
		apis = append(apis, gateway.API{Name: strings.TrimPrefix(console.Path, "/"), Handler: h})
	}
	return apis, nil
}

// console returns the web console. It is there where the management API is, which it needs.
func (p *parts) console() (http.Handler, error) {
	s := p.settings
	o := console.Options{
		Log:           p.log,
		SubscriberURL: s.Subscriber.PublicURL,
		Secure:        s.TLS.Certificate != "",
		OpenSignUp:    s.Signup == settings.SignupOpen,
		Version:       p.version,
	}
	if p.ports.subscriber != nil {
		if address, ok := p.ports.subscriber.Addr().(*net.TCPAddr); ok {
			o.SubscriberPort = address.Port
		}
	}
	return console.New(o)
}

// newAddressLimit bounds the connections of each address to one public listener.
func (p *parts) newAddressLimit() *wire.AddressLimit {
	limit := p.settings.Limits.ConnectionsPerAddress
	if files, known := maxOpenFiles(); limit == 0 && known {
		limit = int64(min(files, math.MaxInt32) / 20 * 19) // what is left is for others
	}
	return wire.NewAddressLimit(int(limit), p.settings.TrustedProxies)
}

// everywhere asks all nodes of the service, of which this one may be the only one.
func (p *parts) everywhere() everywhere { return everywhere{p.grid, p.log} }

// usageReport reads what was used on all nodes.
func (p *parts) usageReport() manage.Usage {
	if p.settings.NATS == "" {
		return p.usage // it knows everything
	}
	return usageEverywhere{p.usage, p.everywhere()}
}

func (p *parts) openSubscriber(context.Context) (err error) {
	s := &p.settings.Subscriber
	p.addresses = p.newAddressLimit()
	p.fanout, err = fanout.New(fanout.Options{
		Log: p.log, Node: p.node, AddressLimit: p.addresses, Socket: httpkit.SocketOf, Heartbeat: s.Heartbeat, WriteTimeout: s.WriteTimeout,
	})
	if err != nil {
		return err
	}
	p.subscriber = subscribe.New(
		subscribe.Parts{
			Log: p.log, Catalog: p.catalog, Router: p.router, Fanout: p.fanout, Notices: p.grid, Sources: p.grid, Counters: p.grid, Meter: p.usage,
			Alone: p.settings.NATS == "",
		},
		subscribe.Options{Proxies: p.settings.TrustedProxies, SnapshotEvent: s.SnapshotEvent, SnapshotTimeout: s.SnapshotTimeout, MaxConnections: p.edition.Connections, LimitMessage: p.edition.Refusal()})
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
	p.poller = poll.New(poll.Parts{Log: p.log, Catalog: p.catalog, Router: p.router, Grid: p.grid}, p.pollOptions())
	return nil
}

// pollOptions are those of the poller, and of who tries a URL before it is polled.
func (p *parts) pollOptions() poll.Options {
	s := &p.settings.Poller
	return poll.Options{
		Version:         p.version,
		DenyPrivate:     s.DenyPrivate || p.settings.Environment == settings.Production,
		ErrorThreshold:  int(max(1, s.ErrorThreshold)),
		HostConcurrency: int(s.HostConcurrency),
		Concurrency:     int(s.Concurrency),
		MessageTTL:      p.settings.Grid.MessageTTL,
		Polled:          p.countPoll,
		Quota:           p.quotaOfSource,
		Tracer:          p.tracer,
	}
}
