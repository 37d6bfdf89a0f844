// Command scaling works out what an installation needs: how many nodes, what bandwidth, what it costs. docs/scaling.md explains
// the arithmetic and where its figures come from.
//
// It is a model, not a measurement: it multiplies what was measured on one machine. It knows nothing of the network in
// between, and leaves room (-headroom) for what it does not know.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	in := defaults()
	flags := flag.NewFlagSet("scaling", flag.ContinueOnError)
	w, m, f, p := &in.Load, &in.Machine, &in.Figures, &in.Prices
	flags.Float64Var(&w.Subscribers, "subscribers", w.Subscribers, "connected at once")
	flags.Float64Var(&w.Topics, "topics", w.Topics, "topics with subscribers")
	flags.Float64Var(&w.ChangesPerMinute, "changes", w.ChangesPerMinute, "publications that change a topic, per topic and minute")
	flags.Float64Var(&w.DocumentBytes, "document", w.DocumentBytes, "bytes of a document")
	flags.Float64Var(&w.PatchBytes, "patch", w.PatchBytes, "bytes of the patch of one change")
	flags.Float64Var(&w.Compression, "compression", w.Compression, "how many times smaller patches and documents get; 1 without")
	flags.DurationVar(&w.Heartbeat, "heartbeat", w.Heartbeat, "subscriber.heartbeat")
	flags.DurationVar(&w.Session, "session", w.Session, "how long a subscriber stays connected")
	flags.DurationVar(&w.Storm, "storm", w.Storm, "in what time the subscribers of a lost node come back")
	flags.Float64Var(&w.Regions, "regions", w.Regions, "places with subscriber nodes of their own")
	flags.Float64Var(&m.Cores, "cores", m.Cores, "of a subscriber node")
	flags.Float64Var(&m.MemoryGB, "memory", m.MemoryGB, "GB of a subscriber node")
	flags.Float64Var(&m.NetworkGbps, "network", m.NetworkGbps, "Gbit/s of a subscriber node")
	flags.Float64Var(&m.Connections, "connections", m.Connections, "most connections on one node: how many may be lost at once")
	flags.Float64Var(&m.Headroom, "headroom", m.Headroom, "part of each resource that is left free")
	flags.Float64Var(&f.SubscriberKB, "kb", f.SubscriberKB, "KB of the process per subscriber (measured)")
	flags.Float64Var(&f.SocketKB, "socket-kb", f.SocketKB, "KB of the kernel per idle connection (measured)")
	flags.Float64Var(&f.WriteMicros, "write", f.WriteMicros, "CPU µs of one write to one subscriber (measured)")
	flags.Float64Var(&f.PostMicros, "post", f.PostMicros, "CPU µs of one POST (measured)")
	flags.Float64Var(&f.FollowMicros, "follow", f.FollowMicros, "CPU µs of taking one revision from the grid and comparing it")
	flags.Float64Var(&f.ConnectMicros, "connect", f.ConnectMicros, "CPU µs of one connection (measured)")
	flags.Float64Var(&f.StreamPerSecond, "stream", f.StreamPerSecond, "publications per second that one NATS stream stores")
	flags.Float64Var(&p.NodeHour, "price-node", p.NodeHour, "price of a node's hour")
	flags.Float64Var(&p.GB, "price-gb", p.GB, "price of a GB that leaves")
	asJSON := flags.Bool("json", false, "print as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	plan, err := in.plan()
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(out).Encode(struct {
			Input input
			Plan  estimate
		}{in, plan})
	}
	return plan.print(out, &in)
}

// defaults are ten million people who each look at one of a hundred thousand documents.
func defaults() input {
	return input{
		Load: load{
			Subscribers: 10_000_000, Topics: 100_000, ChangesPerMinute: 6, DocumentBytes: 4096, PatchBytes: 200, Compression: 1,
			Heartbeat: 10 * time.Second, Session: 10 * time.Minute, Storm: 30 * time.Second, Regions: 1,
		},
		Machine: machine{Cores: 16, MemoryGB: 32, NetworkGbps: 10, Connections: 500_000, Headroom: 0.5},
		Figures: figures{
			SubscriberKB: 0.7, SocketKB: 4, WriteMicros: 10, PostMicros: 37, FollowMicros: 37, ConnectMicros: 64, StreamPerSecond: 5000,
		},
		Prices: prices{NodeHour: 0.7, GB: 0.02},
	}
}
