package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/demo"
	"github.com/freshet-io/freshet/internal/server"
	"github.com/freshet-io/freshet/internal/settings"
)

// demoListeners are where the demo listens if nobody says otherwise and nobody else does.
var demoListeners = map[string]string{
	"gateway-listen": "127.0.0.1:8000", "subscriber-listen": "127.0.0.1:6080", "admin-listen": "127.0.0.1:8001", "pages-listen": "127.0.0.1:7070",
}

func newDemo(p *process) *cobra.Command {
	given := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a server with live data, and say what to open",
		Long: `Start a server with live data on this machine: quotes, a news feed, sensors and a slow API, with pages that follow
them. It says what to open and what to type. Nothing is kept: Ctrl-C ends it and leaves nothing behind. Ports that are in use are
replaced by free ones.`,
		Example: `# Start it, and open what it prints
freshet demo

# Follow it in another terminal
freshet tail Quotes

# For a script: one line of JSON with all addresses and keys
freshet demo -o json`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, f := range []struct{ name, help string }{
		{"pages-listen", "Address of the example pages"},
		{"gateway-listen", "Address of the gateway"},
		{"subscriber-listen", "Address of the subscriber interface"},
		{"admin-listen", "Address of the gateway administration"},
	} {
		given[f.name] = new(string)
		addText(flags, given[f.name], f.name, "ADDRESS", f.help).DefValue = demoListeners[f.name]
	}
	out := addOutput(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(cmd); err != nil {
			return err
		}
		listen := map[string]string{}
		for name, usual := range demoListeners {
			if listen[name] = *given[name]; listen[name] == "" {
				listen[name] = freeAddress(cmd.Context(), usual)
			}
		}
		return runDemo(cmd.Context(), p, out, listen)
	}
	return cmd
}

// freeAddress is the usual address, or one with a free port if somebody else is there.
func freeAddress(ctx context.Context, usual string) string {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", usual)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return usual
}

// runDemo runs the server and everything around it until ctx ends or one of them fails.
func runDemo(ctx context.Context, p *process, out *output, listen map[string]string) error {
	data, err := os.MkdirTemp("", "freshet-demo-")
	if err != nil {
		return freshet.Wrap(freshet.Internal, err, "there is no place for temporary files")
	}
	defer func() { _ = os.RemoveAll(data) }()
	pages, err := new(net.ListenConfig).Listen(ctx, "tcp", listen["pages-listen"])
	if err != nil {
		return freshet.Wrap(freshet.Conflict, err, "the example pages cannot be served at "+listen["pages-listen"])
	}
	defer func() { _ = pages.Close() }()
	effective, err := settings.Load(settings.Sources{Flags: map[string]string{
		"data": data, "gateway-listen": listen["gateway-listen"], "subscriber-listen": listen["subscriber-listen"],
		"admin-listen": listen["admin-listen"], "log-level": "warn", "drain-timeout": "1s", "admin-password": freshet.NewKey(freshet.PublisherKey).Reveal(),
	}})
	if err != nil {
		return err
	}
	log := server.NewLogger(p.stderr, &effective.Settings)

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ready := make(chan server.Addresses, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := server.Run(ctx, server.Options{
			Settings: effective.Settings, Version: readBuild().Version, Log: log,
			Ready: func(at server.Addresses) { ready <- at },
		})
		stop(err)
	})
	defer wg.Wait()
	select {
	case <-ctx.Done():
	case at := <-ready:
		stop(showDemo(ctx, p, out, log, pages, at))
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// showDemo fills the server with life until ctx ends.
func showDemo(ctx context.Context, p *process, out *output, log *slog.Logger, pages net.Listener, at server.Addresses) error {
	c, err := client.New(client.Options{
		BaseURL: "http://" + localhost(at.Gateway), SubscriberURL: "http://" + localhost(at.Subscriber), AdminURL: "http://" + localhost(at.Admin),
	})
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	d, err := demo.New(ctx, c, "http://"+localhost(pages.Addr().String()))
	if err != nil {
		return told(err)
	}
	web := &http.Server{Handler: d.Handler(), ReadHeaderTimeout: 5 * time.Second}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = web.Serve(pages) }) // ends with Close
	defer func() { _ = web.Close() }()
	wg.Go(func() {
		d.Feed(ctx, func(err error) { log.Warn("the demo could not publish", "err", err) })
	})
	if out.isJSON() {
		err = out.json(d.Guide)
	} else {
		_, err = fmt.Fprint(p.stdout, demoText(&d.Guide))
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// localhost names this machine as people do.
func localhost(address string) string {
	if port, ok := strings.CutPrefix(address, "127.0.0.1:"); ok {
		return "localhost:" + port
	}
	return reachable(address)
}

// demoText says what to open and what to type. The server is always named: the current context may be another one.
func demoText(g *demo.Guide) string {
	server, subscriber := " --server "+g.Gateway, ""
	if !strings.HasSuffix(g.Subscriber, "localhost:6080") {
		subscriber = " --subscriber " + g.Subscriber
	}
	quotes := g.Topics[demo.Quotes]
	return fmt.Sprintf(`
  Freshet demo is running. Nothing is kept; Ctrl-C ends it.

  Open
    %[1]s/                                   pages that follow live data
    %[2]s/console/                           the console; sign in as %[11]s, %[12]s
    %[2]s/api/v1/api-browser/index.html      the API, to browse and to try

  Follow, in another terminal
    freshet tail %[5]s%[3]s%[4]s --key %[6]s
    curl -N '%[7]s/v1/topics/%[5]s?X-Sd-Subscriber-Key=%[6]s'

  Publish
    curl -X POST %[2]s/publish/v1/topics/%[8]s \
      -H 'X-Sd-Publisher-Key: %[9]s' \
      -H 'Content-Type: application/json' -d '[{"hello": "world"}]'

  Or sign in, and call topics by their names: %[10]s
    freshet login%[3]s%[4]s --email %[11]s      (the password is: %[12]s)
    freshet tail Quotes
    freshet tail Sensors --filter s1,s2
    freshet topics list

`, g.Pages, g.Gateway, server, subscriber, quotes, g.SubscriberKey, g.Subscriber, g.Topics[demo.Hooks], g.PublisherKey,
		strings.Join([]string{demo.Quotes, demo.News, demo.Sensors, demo.Weather, demo.Hooks}, ", "), g.Email, g.Password)
}
