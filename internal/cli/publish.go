package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

// publishing is what a run of freshet publish does.
type publishing struct {
	p      *process
	out    *output
	client *client.Client
	topic  string
	opts   client.PublishOptions
	form   client.PatchForm // empty for whole documents
	every  time.Duration
	count  int
}

func newPublish(p *process) *cobra.Command {
	w := &publishing{p: p}
	var key string
	var lines, patch, merge bool
	cmd := &cobra.Command{
		Use:   "publish TOPIC [FILE]",
		Short: "Publish a document",
		Long: `Publish a JSON document to a topic, from a file or, with - or none, from stdin. TOPIC is an id, a name, or APP/NAME.
Signed in, the publisher key is found by itself. It prints the version that the publication made.`,
		Example: `# A file
freshet publish Quotes quotes.json

# Each line of a program's output, as it comes
vmstat -n 1 | jq -cR --unbuffered . | freshet publish Load --lines

# A change instead of a document, only if nobody was faster
echo '[{"op":"replace","path":"/ACME","value":102}]' |
  freshet publish Quotes --patch --if-match k3j2h1-42`,
		Args: takes,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addText(flags, &key, "key", "KEY", "The app's publisher key; signed in, it is found by itself")
	flags.BoolVar(&lines, "lines", false, "Publish each line as a document of its own, as it comes")
	flags.DurationVar(&w.every, "every", 0, "Publish the file again and again, this long apart; with --lines, a line at a time")
	flags.BoolVar(&patch, "patch", false, "The input is a JSON Patch (RFC 6902) of the current document")
	flags.BoolVar(&merge, "merge", false, "The input is a JSON Merge Patch (RFC 7396) of the current document")
	addText(flags, &w.opts.IfMatch, "if-match", "VERSION", "Publish only if the topic is still at this version")
	addText(flags, &w.opts.IdempotencyKey, "idempotency-key", "KEY", "Make repeating this publication harmless for 24 hours")
	w.out = addOutput(p, cmd)
	r := addRemote(p, cmd)
	cmd.ValidArgsFunction = completeThenFiles(complete(r, topicNames))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.out.check(cmd); err != nil {
			return err
		}
		file := argument(args, 1)
		switch {
		case patch && merge:
			return usage(cmd, "--patch and --merge are two languages; choose one")
		case w.every < 0:
			return usage(cmd, "--every must not be negative")
		case w.every > 0 && !lines && (file == "" || file == "-"):
			return usage(cmd, "--every reads a file again and again; stdin can be read once, or with --lines")
		case (lines || w.every > 0) && w.opts.IdempotencyKey != "":
			return usage(cmd, "an --idempotency-key is for one publication")
		case patch:
			w.form = client.JSONPatch
		case merge:
			w.form = client.MergePatch
		}
		if err := w.open(cmd.Context(), r, args[0], key); err != nil {
			return err
		}
		defer w.client.CloseIdleConnections()
		err := w.run(cmd.Context(), file, lines)
		if cmd.Context().Err() != nil {
			return nil // Ctrl-C is how it ends
		}
		return err
	}
	return cmd
}

// completeThenFiles completes the first word by other means, and files after it.
func completeThenFiles(first cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return first(cmd, args, word)
	}
}

// open finds the topic and the right to publish to it.
func (w *publishing) open(ctx context.Context, r *remote, topic, key string) (err error) {
	if w.client, err = r.client(); err != nil {
		return err
	}
	if key != "" && freshet.IsID(topic) {
		w.topic, w.opts.Key = topic, key
		return nil
	}
	a, err := openTopic(ctx, w.client, topic)
	if err != nil {
		return err
	}
	w.topic, w.opts.Key = a.id, key
	if key == "" && a.app != nil {
		w.opts.Key = a.app.PublisherKey
	}
	if w.opts.Key == "" {
		return &failure{
			error: freshet.Errorf(freshet.Unauthenticated, "publishing needs the app's publisher key"),
			hint:  "--key brings it; freshet login finds it by itself",
		}
	}
	return nil
}

func (w *publishing) run(ctx context.Context, file string, lines bool) error {
	switch {
	case lines:
		in, err := w.source(file)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		return w.lines(ctx, in)
	case w.every > 0:
		return w.repeat(ctx, file)
	}
	in, err := w.source(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	text, err := unlessCancelled(ctx, func() ([]byte, error) { return io.ReadAll(in) })
	if err != nil {
		return fileError(file, err)
	}
	return w.publish(ctx, text)
}

// source opens the file, or stdin.
func (w *publishing) source(file string) (io.ReadCloser, error) {
	if file == "" || file == "-" {
		if isTerminal(w.p.stdin) {
			w.p.done("Reading JSON from the terminal; Ctrl-D ends it")
		}
		return io.NopCloser(w.p.stdin), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fileError(file, err)
	}
	return f, nil
}

func fileError(file string, err error) error {
	kind := freshet.Invalid
	if errors.Is(err, os.ErrNotExist) {
		kind = freshet.NotFound
	}
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		err = pathErr.Err
	}
	return freshet.Errorf(kind, "%s cannot be read: %v", quote(firstOf(file, "stdin")), err)
}

// maxLine is more than any server accepts by default.
const maxLine = 64 << 20

func (w *publishing) lines(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	number := 0
	for {
		more, err := unlessCancelled(ctx, func() (bool, error) { return lines.Scan(), nil })
		if err != nil || !more {
			break
		}
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := w.publish(ctx, lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := pause(ctx, w.every); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number+1, err)
	}
	w.p.done("%d published", w.count)
	return nil
}

// repeat goes on while the file cannot be read: a program may be just replacing it.
func (w *publishing) repeat(ctx context.Context, file string) error {
	for first := true; ; first = false {
		text, err := os.ReadFile(file)
		if err != nil && first {
			return fileError(file, err)
		}
		if err == nil {
			if err := w.publish(ctx, text); err != nil {
				return err
			}
		}
		if err := pause(ctx, w.every); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *publishing) publish(ctx context.Context, text []byte) error {
	var done client.Published
	var err error
	if w.form == "" {
		done, err = w.client.Publish(ctx, w.topic, text, w.opts)
	} else {
		done, err = w.client.PatchDocument(ctx, w.topic, w.form, text, w.opts)
	}
	if err != nil {
		return told(err)
	}
	w.count++
	if w.opts.IfMatch != "" && w.opts.IfMatch != "*" {
		w.opts.IfMatch = done.Version // what follows builds on this one
	}
	if w.out.isJSON() {
		return w.out.json(map[string]any{"topic": w.topic, "version": done.Version, "replayed": done.Replayed})
	}
	if done.Version == "" {
		_, err = fmt.Fprintln(w.p.stderr, "Nobody is subscribed, so the publication was dropped (the topic has force_publishing off)")
		return err
	}
	_, err = fmt.Fprintln(w.p.stdout, done.Version)
	return err
}
