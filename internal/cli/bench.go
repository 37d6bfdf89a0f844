package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/histogram"
	"github.com/freshet-io/freshet/internal/screen"
)

// benchOptions are how hard to try.
type benchOptions struct {
	topic       string
	subscribers int
	rate        int // publications a second
	size        int // bytes of a document
	duration    time.Duration
	compress    bool
}

func newBench(p *process) *cobra.Command {
	o := benchOptions{subscribers: 100, rate: 20, size: 1000, duration: 10 * time.Second}
	cmd := verb{
		use: "bench", short: "Load-test your own server",
		long: `Load-test a server: connect subscribers, publish at a steady rate, and measure how long each document takes to arrive. It
makes a temporary app and deletes it afterwards. Both ends are this program, so it takes part in what it measures: many subscribers
need a machine of their own. Do it to servers that are yours.`,
		example: `# 100 subscribers, 20 publications a second, for 10 seconds
freshet bench

# More of everything
freshet bench --subscribers 1000 --rate 50 --size 4000 --duration 30s

# For a script
freshet bench -o json | jq .latency_ms.p99`,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.Var(&countFlag{&o.subscribers}, "subscribers", "How many subscribers")
			flags.Var(&countFlag{&o.rate}, "rate", "How many publications a second")
			flags.Var(&countFlag{&o.size}, "size", "How many bytes a document has")
			flags.DurationVar(&o.duration, "duration", o.duration, "How long to publish")
			flags.BoolVar(&o.compress, "compress", false, "Ask for compressed streams")
			addText(flags, &o.topic, "topic", "TOPIC", "Publish to this topic of yours, which overwrites its document, instead of a temporary one")
		},
		run: func(k *call) error { return bench(k, o) },
	}.command(p)
	return cmd
}

func bench(k *call, o benchOptions) error {
	if o.duration <= 0 {
		return usage(k.cmd, "--duration must be positive")
	}
	at, cleanUp, err := benchTopic(k, o.topic)
	if err != nil {
		return err
	}
	defer cleanUp()
	run := &benchRun{benchOptions: o, p: k.out.p, client: k.c, topic: at.id, key: at.app.SubscriberKey, publisherKey: at.app.PublisherKey}
	if at.app.ClientRequestSignatureEnabled {
		run.signatureKey = at.app.SignatureKey
	}
	report, err := run.run(k.ctx)
	if err != nil {
		return err
	}
	if k.out.isJSON() {
		return k.out.json(report)
	}
	return report.show(k.out.p)
}

// benchTopic finds the topic, or makes one that cleanUp takes away again, also after Ctrl-C.
func benchTopic(k *call, name string) (at access, cleanUp func(), err error) {
	if name != "" {
		if at, err = openTopic(k.ctx, k.c, name); err == nil && at.app == nil {
			err = freshet.Errorf(freshet.NotFound, "the topic must be one of yours")
		}
		return at, func() {}, err
	}
	app, err := k.c.CreateApp(k.ctx, client.AppChange{Name: client.Set("freshet bench " + time.Now().UTC().Format("2006-01-02 15:04:05.000"))})
	if err != nil {
		return at, nil, err
	}
	cleanUp = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), 10*time.Second)
		defer cancel()
		if err := k.c.DeleteApp(ctx, app.ID); err != nil {
			_, _ = fmt.Fprintf(k.out.p.stderr, "The temporary app %s could not be deleted: %v\n", app.ID, err)
		}
	}
	topic, err := k.c.CreateTopic(k.ctx, app.ID, client.NewTopic{Name: "bench", Publisher: client.NewPublisher{Type: freshet.HTTPPost}})
	if err != nil {
		cleanUp()
		return at, nil, err
	}
	return access{id: topic.ID, app: app}, cleanUp, nil
}

// benchReport is what came out.
type benchReport struct {
	Subscribers   int           `json:"subscribers"`
	Rate          int           `json:"rate"`
	DocumentBytes int           `json:"document_bytes"`
	Seconds       float64       `json:"seconds"`
	Published     int64         `json:"published"`
	PublishFailed int64         `json:"publish_failed"`
	Delivered     int64         `json:"delivered"`
	PerSecond     float64       `json:"delivered_per_second"`
	Merged        int64         `json:"merged"` // versions that a subscriber got together with a later one
	Reconnects    int64         `json:"reconnects"`
	Complete      bool          `json:"complete"` // everybody holds the last document
	LatencyMs     percentilesMs `json:"latency_ms"`
	PublishMs     percentilesMs `json:"publish_ms"`
	latency       histogram.Fine
}

// percentilesMs are milliseconds.
type percentilesMs struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func percentiles(h *histogram.Fine) percentilesMs {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return percentilesMs{ms(h.Mean()), ms(h.Quantile(0.5)), ms(h.Quantile(0.9)), ms(h.Quantile(0.99)), ms(h.Quantile(0.999)), ms(h.Max())}
}

func (r *benchReport) show(p *process) error {
	columns, _ := terminalSize(p.stdout)
	var b strings.Builder
	row := func(name string, m percentilesMs) []string {
		f := func(ms float64) string { return fmt.Sprintf("%.2f", ms) }
		return []string{name, f(m.Mean), f(m.P50), f(m.P90), f(m.P99), f(m.P999), f(m.Max)}
	}
	if err := writeTable(&b, [][]string{
		{"milliseconds", "mean", "p50", "p90", "p99", "p99.9", "max"},
		row("delivery", r.LatencyMs), row("publication", r.PublishMs),
	}); err != nil {
		return err
	}
	b.WriteString("\nHow long documents took to arrive:\n")
	if err := screen.Draw(&b, &r.latency, min(columns, 100)); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%d publications to %d subscribers in %.1f s: %d deliveries, %.0f a second",
		r.Published, r.Subscribers, r.Seconds, r.Delivered, r.PerSecond)
	for text, n := range map[string]int64{"versions came together with a later one": r.Merged, "publications failed": r.PublishFailed, "connections were made again": r.Reconnects} {
		if n > 0 {
			fmt.Fprintf(&b, "\n%d %s", n, text)
		}
	}
	if r.Complete {
		b.WriteString("\nEverybody holds the last document.\n")
	} else {
		b.WriteString("\nNot everybody got the last document in time.\n")
	}
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}
