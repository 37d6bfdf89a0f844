package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

// tailing is what a run of freshet tail does.
type tailing struct {
	p      *process
	client *client.Client
	title  string // what is followed, for the first row
	target string
	opts   client.SubscribeOptions
	count  int // events to show; 0 for all
}

func newTail(p *process) *cobra.Command {
	w := &tailing{p: p}
	var raw, patches, documents, snapshots bool
	var key, signature, filter string
	var headers []string
	cmd := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Follow a topic, or any URL, live",
		Long: `Follow a topic: its document, always current, with what changed highlighted. TOPIC is an id, a name, APP/NAME, or the
URL of an API, which the server then polls. Into a pipe goes one document per line, at every change. Signed in, keys are found by
themselves. Connections that break are made again, and nothing is lost.`,
		Example: `# Watch a topic in the terminal
freshet tail Quotes

# The last price of one thing, at every change
freshet tail Quotes --json | jq --unbuffered .ACME

# Any API as a stream
freshet tail https://api.example.com/prices.json --header 'Authorization: Bearer …'`,
		Args: takes,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&documents, "json", false, "Print the whole document at every change, one per line")
	flags.BoolVar(&patches, "patches", false, "Print what changed as JSON Patch, one per line; whole documents as a patch that replaces all")
	flags.BoolVar(&raw, "raw", false, "Print the bytes of the stream as they come")
	flags.VarP(&countFlag{&w.count}, "count", "n", "Stop after this many events")
	addText(flags, &filter, "filter", "IDS", "Only these items of an item topic, separated by commas")
	addText(flags, &key, "key", "KEY", "The app's subscriber key; signed in, it is found by itself")
	addText(flags, &signature, "signature-key", "KEY", "The app's signature key, if it requires signed requests")
	flags.Var(&listFlag{&headers, "HEADER"}, "header", "A header for the API behind a URL, like 'Name: value'; may be repeated")
	flags.BoolVar(&snapshots, "snapshots", false, "Ask the server for whole documents instead of patches")
	flags.BoolVar(&w.opts.Compress, "compress", false, "Ask the server for a compressed stream")
	r := addRemote(p, cmd)
	cmd.ValidArgsFunction = complete(r, topicNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if b2i(raw)+b2i(patches)+b2i(documents) > 1 {
			return usage(cmd, "--raw, --patches and --json are three ways to print; choose one")
		}
		w.opts.Key, w.opts.SignatureKey = key, signature
		if snapshots {
			w.opts.Mode = client.Snapshots
		}
		if filter != "" {
			w.opts.Filter = strings.Split(filter, ",")
		}
		var err error
		if w.opts.Headers, err = readHeaders(cmd, headers); err != nil {
			return err
		}
		if err := w.open(cmd.Context(), r, args[0]); err != nil {
			return err
		}
		defer w.client.CloseIdleConnections()
		switch live := isTerminal(p.stdout) && p.variable("TERM") != "dumb"; {
		case raw:
			err = w.raw(cmd.Context())
		case patches:
			err = w.lines(cmd.Context(), patchLine)
		case documents || !live:
			err = w.lines(cmd.Context(), func(e client.Event) []byte { return e.Document })
		default:
			err = w.live(cmd.Context())
		}
		if cmd.Context().Err() != nil {
			return nil // Ctrl-C is how it ends
		}
		return toldBy(w.client, err)
	}
	return cmd
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// patchLine is an event as a patch, also one that brings a whole document: every line applies to the one before.
func patchLine(e client.Event) []byte {
	if e.Kind == client.Patch {
		return e.Data
	}
	return fmt.Appendf(nil, `[{"op":"replace","path":"","value":%s}]`, e.Document)
}

func readHeaders(cmd *cobra.Command, lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(line, "\r\n") || strings.Contains(name, " ") {
			return nil, usage(cmd, "--header must look like 'Name: value'")
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

func isTarget(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

// open finds the topic and the keys that open it.
func (w *tailing) open(ctx context.Context, r *remote, topic string) (err error) {
	if w.client, err = r.client(); err != nil {
		return err
	}
	w.title, w.target = topic, topic
	w.opts.FailFast = true // later failures are repeated; a wrong address is better said at once
	if isTarget(topic) {
		return nil
	}
	if w.opts.Key != "" && freshet.IsID(topic) {
		return nil
	}
	a, err := openTopic(ctx, w.client, topic)
	if err != nil {
		return err
	}
	w.target = a.id
	if a.app != nil && w.opts.Key == "" {
		w.opts.Key = a.app.SubscriberKey
	}
	if a.app != nil && w.opts.SignatureKey == "" && a.app.ClientRequestSignatureEnabled {
		w.opts.SignatureKey = a.app.SignatureKey
	}
	return nil
}

// lines prints one line per event, and what goes wrong to stderr.
func (w *tailing) lines(ctx context.Context, line func(client.Event) []byte) error {
	seen := 0
	w.opts.OnState = w.sayState
	for e, err := range w.client.Subscribe(ctx, w.target, w.opts) {
		if err != nil {
			return err
		}
		if e.Kind == client.Failure {
			_, _ = fmt.Fprintf(w.p.stderr, "freshet: %s\n", plain(e.Err.Error()))
			continue
		}
		// One write per line: whoever reads the pipe never sees half of one.
		if _, err := w.p.stdout.Write(append(slices.Clip(line(e)), '\n')); err != nil {
			return err
		}
		if seen++; seen == w.count {
			return nil
		}
	}
	return nil
}

// sayState tells a person at the terminal why nothing comes.
func (w *tailing) sayState(s client.State) {
	if s.Phase == client.Waiting {
		w.p.done("%s; connecting again", reason(s.Err))
	}
}

// reason says in few words why a connection ended.
func reason(err error) string {
	if errors.Is(err, io.EOF) {
		return "The server closed the connection"
	}
	if e, ok := errors.AsType[*client.UnreachableError](err); ok {
		return "No answer from " + e.URL
	}
	return plain("The connection broke: " + err.Error())
}

// raw prints everything that comes, heartbeats included.
func (w *tailing) raw(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.opts.OnBytes = func(b []byte) {
		if _, err := w.p.stdout.Write(b); err != nil {
			stop(err)
		}
	}
	w.opts.OnState = w.sayState
	seen := 0
	for e, err := range w.client.Subscribe(ctx, w.target, w.opts) {
		if err != nil {
			return err
		}
		if e.Kind == client.Failure {
			continue
		}
		if seen++; seen == w.count {
			return nil
		}
	}
	return nil
}
