// Package server puts the parts of Freshet together into a process: it opens the listeners, starts the parts in
// order, says when everything is ready, and takes it all down again without losing what is under way.
//
// It is the only package that knows all the others. It deliberately holds no rules of its own: what a request means
// is decided in the roles, what is allowed in the catalog. It reads neither the environment nor the command line;
// the caller passes settings and streams in.
//
// Run may be called several times in one process, also at the same time, with different ports and data.
package server

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/settings"
)

// Options is what a server runs with.
type Options struct {
	Settings settings.Settings
	Version  string
	Log      *slog.Logger
	Banner   io.Writer // where a person is looking; nil when nobody is
	Colour   bool      // whether the banner may be coloured

	node   string // what this process is called in logs, traces and lists of connections; made by Run
	bounds bounds // chosen by Run where they are zero

	// withoutFastPath has net/http read and answer everything, for tests that compare.
	withoutFastPath bool

	// Ready is told the real addresses once everything works; nil if nobody wants to know.
	Ready func(Addresses)
}

// Addresses are where a server listens, as host:port; empty where it has no such listener.
type Addresses struct{ Gateway, Admin, Subscriber string }

// Run serves until ctx ends and then drains. It returns nil after a drain, whether or not everybody finished in
// time, and an error when the server could not start or a part of it failed.
func Run(ctx context.Context, o Options) error {
	startedAt := time.Now()
	o.node = fanout.NewNode()
	prepareProcess(o.Log, os.DirFS("/"))
	o.bounds.complete(os.DirFS("/"))

	edition, err := activate(&o.Settings, startedAt, o.Log)
	if err != nil {
		return err
	}
	ports, err := bind(ctx, &o.Settings, o.bounds.stall)
	if err != nil {
		return err
	}
	defer ports.close()

	r := &readiness{parts: []string{"grid"}}
	for _, role := range o.Settings.Roles {
		r.parts = append(r.parts, string(role))
	}
	failed := make(chan error, 3) // one for each listener; nobody waits to send
	stages := plan(&o, edition, ports, r, failed)
	if err := stages.start(ctx); err != nil {
		stop(stages, o.Log)
		if ctx.Err() != nil {
			o.Log.Info("stopped")
			return nil // told to stop while starting, which is no failure
		}
		return err
	}
	o.Log.Info("ready", append(ports.attrs(), "version", o.Version, "environment", o.Settings.Environment, "edition", edition.Name,
		"node", o.node, "took_ms", time.Since(startedAt).Milliseconds())...)
	if o.Banner != nil {
		printBanner(&o, ports)
	}
	if o.Ready != nil {
		o.Ready(ports.addresses())
	}

	var cause error
	select {
	case <-ctx.Done():
	case cause = <-failed:
	}
	stop(stages, o.Log)
	o.Log.Info("stopped")
	return cause
}

// stop logs what went wrong and goes on: the process is about to end, and nobody could act on an error.
func stop(stages *stages, log *slog.Logger) {
	if err := stages.stop(log); err != nil {
		log.Warn("stopping had problems", "err", err)
	}
}
