package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// print shows the plan to a person, with what decided it.
func (r *estimate) print(out io.Writer, in *input) error {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-26s "+format+"\n", append([]any{label}, args...)...)
	}
	w := &in.Load

	fmt.Fprintf(&b, "%s subscribers of %s topics, %s changes of a topic per minute\n\n", number(w.Subscribers), number(w.Topics), number(w.ChangesPerMinute))
	line("publications", "%s/s", number(r.PublicationsPerSecond))
	line("deliveries", "%s/s", number(r.DeliveriesPerSecond))
	line("heartbeats", "%s/s", number(r.HeartbeatsPerSecond))
	line("new connections", "%s/s", number(r.ConnectsPerSecond))

	fmt.Fprintf(&b, "\nSubscriber nodes that each resource asks for, with %.0f %% of it left free, per region:\n\n", in.Machine.Headroom*100)
	for _, bound := range r.Bounds {
		line(bound.Resource, "%s   (%s)", number(bound.Nodes), bound.Of)
	}
	b.WriteString("\n")
	line("subscriber nodes", "%s per region, one of them to spare; %s region(s)", number(r.SubscriberNodes), number(w.Regions))
	line("on each", "%s subscribers, %.1f cores, %.1f GB, %.2f Gbit/s out", number(r.PerNode), r.NodeCores, r.NodeMemoryGB, r.NodeGbps)
	line("when one is lost", "%s connections/s on each other node for %s, %.2f cores", number(r.StormPerSecond), w.Storm, r.StormCores)
	line("API nodes", "%s", number(r.APINodes))
	line("NATS", "%s stream(s), %.2f Gbit/s to the nodes of a region", number(r.NATSStreams), r.NATSGbps)
	line("bandwidth out", "%.1f Gbit/s, %s TB a month", r.EgressGbps, number(r.EgressTB))
	line("cost a month", "%s for nodes at %v an hour, %s for bytes at %v a GB", number(r.MonthlyNodes), in.Prices.NodeHour, number(r.MonthlyBytes), in.Prices.GB)
	_, err := io.WriteString(out, b.String())
	return err
}

// number writes large numbers with thousands apart and small ones with a digit.
func number(n float64) string {
	if n < 100 && n != math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
