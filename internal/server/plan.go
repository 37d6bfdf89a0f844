package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/wire"
)

// plan plans the parts and returns them in the order in which they start.
//
// Start: admin listener (so that probes are answered while the rest comes up), then what everything stands on, then
// the public listeners, and ready at the very end.
//
// Stop, the same backwards, because:
//   - readiness goes first: whoever balances load looks away before anything is refused;
//   - public listeners next: no new work, streams are ended bit by bit, and what is under way still has everything
//     below it;
//   - then the parts, each before what it stands on;
//   - the admin listener last, so that probes and metrics show the whole drain.
func plan(o *Options, edition freshet.Edition, p *ports, r *readiness, failed chan<- error) *stages {
	parts := &parts{settings: &o.Settings, version: o.Version, node: o.node, edition: edition, ports: p, log: o.Log, health: r,
		streams: httpkit.NewStreams(o.bounds.streamRoom)}
	parts.openBudget(os.DirFS("/"))
	metrics := newMetrics(o.Version)
	parts.administration.expected = o.Settings.Has(settings.RoleGateway)
	guarded := guardAdmin(p.admin.Addr(), o.Settings.Admin.Token, adminHandler(r, metrics, &parts.administration, o.Log))
	admin := newWeb(p.admin, httpkit.Chain(guarded, httpkit.DrainBodies, httpkit.TimeBodies(o.bounds.body)), parts.streams,
		httpkit.StreamLimits{Stall: o.bounds.stall}, o.Log)
	p.admin.Listener, admin.http.ConnState = wire.Guard(p.admin.Listener), wire.GuardState
	public := &public{parts: parts, ports: p, stall: o.bounds.stall, body: o.bounds.body, withoutFastPath: o.withoutFastPath, failed: failed}

	all := []stage{{
		name:  "admin listener",
		start: func(context.Context) error { admin.serve(failed); return nil },
		stop:  admin.drain,
	}}
	heap := new(heapTuner)
	all = append(all, stage{
		name:  "heap",
		start: func(context.Context) error { heap.start(); return nil },
		stop:  func(context.Context) error { heap.close(); return nil },
	})
	all = append(all, stage{name: "tracer", start: parts.openTracer, stop: parts.closeTracer})
	need := needsOf(o.Settings.Roles)
	for _, s := range []struct {
		part part
		stage
	}{
		{partStore, stage{
			start: func(ctx context.Context) error {
				if err := parts.openStore(ctx); err != nil {
					return err
				}
				// Only now: probes are answered while it opens. Streams and publishing outlive a database that is away for a
				// while, so it must not take a node out of service that does these.
				lenient := o.Settings.Has(settings.RolePublish) || o.Settings.Has(settings.RoleSubscribe)
				r.add(check{name: "store", note: parts.store.Health, lenient: lenient})
				return nil
			},
			stop: func(context.Context) error { return parts.store.Close() },
		}},
		{partGrid, stage{
			start: func(ctx context.Context) error {
				if err := parts.openGrid(ctx); err != nil {
					return err
				}
				if c, ok := parts.gridCheck(); ok {
					r.add(c)
				}
				return nil
			},
			stop: parts.closeGrid,
		}},
		// Usage and the catalog remember what notices are about. They begin to listen before those who ask them, and so hear first.
		{partUsage, stage{start: parts.openUsage, stop: parts.closeUsage}},
		{partRouter, stage{start: parts.openRouter, stop: func(context.Context) error { return parts.router.Close() }}},
		{partCatalog, stage{start: parts.openCatalog, stop: func(context.Context) error { parts.catalog.Close(); return nil }}},
		{partRegistry, stage{start: parts.openRegistry}},
		{partPoller, stage{start: parts.openPoller, stop: func(context.Context) error { return parts.poller.Close() }}},
		{partSubscriber, stage{start: parts.openSubscriber, stop: parts.closeSubscriber}},
	} {
		if need.parts[s.part] {
			s.name = string(s.part)
			all = append(all, s.stage)
		}
	}
	all = append(all, stage{name: "questions", start: parts.answer, stop: parts.stopAnswering})
	if need.gatewayListener {
		all = append(all, stage{name: "gateway", start: parts.openGateway, stop: parts.closeGateway})
	}
	return &stages{all: append(all,
		stage{name: "public listeners", start: public.serve, stop: public.drain, patience: o.Settings.Drain.Timeout},
		stage{
			name:  "readiness",
			start: func(context.Context) error { metrics.parts.Store(parts); r.enter(serving); return nil },
			stop: func(context.Context) error {
				r.enter(draining)
				o.Log.Info("draining", "timeout", o.Settings.Drain.Timeout)
				return nil
			},
		},
	)}
}

// public are the listeners that clients use.
type public struct {
	parts  *parts
	ports  *ports
	stall  time.Duration
	body   time.Duration
	failed chan<- error

	withoutFastPath bool

	// Owned by the stage.
	webs []*web
	tls  *tls.Config // nil for plain HTTP
}

func (p *public) serve(context.Context) error {
	if t := &p.parts.settings.TLS; t.Certificate != "" {
		certificate, err := loadCertificate(t.Certificate, t.Key, p.parts.log)
		if err != nil {
			return err
		}
		p.tls = certificate.config()
	}
	if p.ports.gateway != nil {
		p.webs = append(p.webs, p.gatewayWeb())
	}
	if p.ports.subscriber != nil {
		p.ports.subscriber.Listener = p.subscriberListener(p.ports.subscriber.Listener)
		w := newWeb(p.ports.subscriber, httpkit.TimeBodies(p.body)(p.parts.subscriber), p.parts.streams,
			httpkit.StreamLimits{Stall: p.parts.settings.Subscriber.WriteTimeout, Enter: p.parts.addresses.Enter}, p.parts.log)
		w.http.ConnState = wire.GuardState
		p.webs = append(p.webs, w)
	}
	for _, w := range p.webs {
		if p.tls != nil {
			w.http.Handler = httpkit.StrictTransport(w.http.Handler)
		}
		w.serve(p.failed)
	}
	return nil
}

// gatewayWeb is the gateway's listener, with the fast paths of publications and of registered APIs in front of net/http.
func (p *public) gatewayWeb() *web {
	addresses := p.parts.newAddressLimit()
	w := newWeb(p.ports.gateway, p.parts.gateway, p.parts.streams, httpkit.StreamLimits{Stall: p.stall, Enter: addresses.Enter}, p.parts.log)
	bound := addresses.Listen(p.ports.gateway.Listener)
	if p.withoutFastPath {
		p.ports.gateway.Listener, w.http.ConnState = wire.Guard(bound), wire.GuardState
		return w
	}
	w.front = &wire.Server{HeadTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, Log: p.parts.log, ConnContext: httpkit.ConnContext,
		Opened: p.parts.gateway.Opened}
	if p.parts.publisher != nil {
		w.front.Handlers = append(w.front.Handlers, p.parts.publisher.FastPath(p.parts.gateway.Bypass("publish", "v1")))
	}
	w.front.Handlers = append(w.front.Handlers, p.parts.gateway.FastPath())
	if p.tls != nil {
		bound = p.secure(bound, "gateway")
		w.front.Header = httpkit.StrictTransportHeader
	}
	p.ports.gateway.Listener, w.http.ConnState = w.front.Listen(bound), w.front.ConnState
	return w
}

// secure returns a listener with TLS.
func (p *public) secure(l net.Listener, name string) net.Listener {
	return wire.Secure(l, p.tls.Clone(), readHeaderTimeout, p.parts.log.With("listener", name))
}

// subscriberListener is what lies between the subscriber interface and its socket.
func (p *public) subscriberListener(bound net.Listener) net.Listener {
	switch {
	case p.tls != nil:
		return wire.Guard(p.secure(p.parts.addresses.Listen(bound), "subscriber"))
	case p.withoutFastPath:
		return wire.Guard(p.parts.addresses.Listen(bound))
	}
	return p.parts.fanout.Listen(bound, p.parts.subscriber)
}

// drain ends everything at the same time, so that one listener's slow requests do not use up another's time, and
// streams end while their listener waits for them.
func (p *public) drain(ctx context.Context) error {
	var ends []func(context.Context) error
	for _, w := range p.webs {
		ends = append(ends, w.drain)
	}
	if p.ports.subscriber != nil {
		ends = append(ends, p.parts.subscriber.Drain)
	}
	errs := make([]error, len(ends))
	var wg sync.WaitGroup
	for i, end := range ends {
		wg.Go(func() { errs[i] = end(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusNotFound, map[string]string{"message": "Not found"})
}
