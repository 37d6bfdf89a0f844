package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

func run() error {
	opts, naiveAddress := parseFlags()
	if naiveAddress != "" {
		return serveNaive(naiveAddress)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := newBench(opts, os.Stderr)
	if err != nil {
		return err
	}
	defer b.close()
	chosen, servers, err := selected(b)
	if err != nil {
		return err
	}
	if opts.apart && !isApart() {
		return b.runApart(ctx)
	}
	r, err := b.measureAll(ctx, chosen, servers)
	if err != nil {
		return err
	}
	printTable(os.Stdout, r)
	return errors.Join(r.write(opts.out), r.failures())
}

func parseFlags() (o options, naiveAddress string) {
	flag.BoolVar(&o.quick, "quick", false, "about a minute: some scenarios, once")
	flag.IntVar(&o.repeat, "repeat", 3, "how often each scenario is measured; medians are shown")
	flag.DurationVar(&o.window, "window", 5*time.Second, "how long each measurement takes")
	flag.DurationVar(&o.warmUp, "warm-up", time.Second, "how long each load runs before it is measured")
	flag.IntVar(&o.inFlight, "in-flight", 4, "publications in flight, for every server")
	flag.StringVar(&o.only, "only", "", "scenarios to run, separated by commas: sat1k sat10k fixed large connects compress idle slow")
	flag.StringVar(&o.servers, "servers", "", "servers to measure, separated by commas, by the beginnings of their names")
	flag.StringVar(&o.freshet, "freshet", "", "a binary to measure instead of building one")
	flag.IntVar(&o.idle, "idle", 10_000, "idle subscribers, as far as the limit of open files allows; try 100000")
	flag.DurationVar(&o.idleFor, "idle-for", 20*time.Second, "how long idle subscribers are watched")
	flag.IntVar(&o.slowBuffer, "slow-buffer", 4<<10, "receive buffer of the slow subscriber, in bytes; 0 is the system's own")
	flag.BoolVar(&o.apart, "apart", false, "charge servers with their own part of TCP only: in a network of its own, with a core for the generator; as root")
	flag.StringVar(&o.out, "out", filepath.Join("fanout", "results"), "directory of fanout.json and fanout.svg")
	flag.StringVar(&o.profiles, "profiles", "", "directory for CPU profiles of Freshet under load")
	flag.StringVar(&naiveAddress, "naive", "", "only serve as the plain net/http server on this address")
	flag.Parse()
	if o.quick {
		o.repeat, o.window, o.warmUp = 1, min(o.window, 2*time.Second), min(o.warmUp, 500*time.Millisecond)
	}
	o.inFlight = min(max(o.inFlight, 1), maxPublishers)
	return o, naiveAddress
}

// measureAll runs every scenario, going round the servers, so that what disturbs the machine disturbs all alike.
func (b *bench) measureAll(ctx context.Context, chosen []scenario, servers []*contender) (*report, error) {
	r := newReport(b)
	for _, s := range chosen {
		b.say("%s", s.title)
		all := map[string][]metrics{}
		for round := range b.opts.repeat {
			for _, c := range servers {
				if !s.who(c) || round > 0 && (s.once || c.lossy) {
					continue
				}
				m, err := s.run(ctx, b, c)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil {
					b.say("    %-15s %v", c.name, err)
					r.failed(s, c, err)
					continue
				}
				b.say("    %-15s %s", c.name, brief(m))
				all[c.name] = append(all[c.name], m)
			}
		}
		for _, c := range servers {
			if len(all[c.name]) > 0 {
				r.add(s, c, all[c.name])
			}
		}
	}
	r.Figures = r.figures()
	return r, nil
}

// newReport begins the report of a run.
func newReport(b *bench) *report {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return &report{
		At:       time.Now().UTC().Truncate(time.Second),
		Machine:  machine{Cores: b.cores, Kernel: strings.TrimSpace(string(kernel)), Go: runtime.Version(), MaxFiles: b.maxFiles},
		Window:   b.opts.window.String(),
		InFlight: b.opts.inFlight,
		Apart:    b.opts.apart,
	}
}

// write puts the report into dir as JSON and as a plot.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "fanout.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "fanout.svg"), plot(r), 0o644)
}
