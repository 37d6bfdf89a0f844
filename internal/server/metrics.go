package server

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/freshet-io/freshet/internal/histogram"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/poll"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/store"
)

// metrics shows what the parts counted. Labels name kinds of things, never things: the number of series does not grow with
// topics, accounts or subscribers.
type metrics struct {
	registry *prometheus.Registry
	parts    atomic.Pointer[parts] // nil until everything runs
}

// newMetrics makes a registry of our own, so that several servers can live in one process.
func newMetrics(version string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "freshet_build_info",
		Help:        "Always 1; its labels name what is running.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m)
	return m
}

// metric is one name, with its labels.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("freshet_"+name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("freshet_"+name, help, labels, nil), prometheus.GaugeValue}
}

var (
	publications      = counter("publications_total", "Publications, also those of polls, by what became of them.", "outcome")
	publishSeconds    = gauge("publish_seconds", "From taking a publication to having it stored and ordered.")
	diffSeconds       = gauge("diff_seconds", "Reading a publication and comparing it with the document before it.")
	topics            = gauge("topics", "Topics in use on this node.")
	heldBytes         = gauge("documents_memory_bytes", "Memory that documents and their histories take, about.")
	mostHeldBytes     = gauge("documents_memory_limit_bytes", "Memory that they may take; 0 is no limit. Beyond it publications are refused.")
	keptBytes         = gauge("documents_memory_spare_bytes", "Of that memory, what goes before anything is refused.")
	memoryRefusals    = counter("memory_refusals_total", "Publications refused because of memory: documents hold all of it, too many long ones were compared at once, or sent at once.", "why")
	uncompressedBytes = counter("compression_in_bytes_total", "Frames before they were compressed, each once.")
	packedBytes       = counter("compression_out_bytes_total", "Frames after they were compressed, each once.")

	connections   = gauge("connections", "Subscribers, by what they get.", "mode", "encoding")
	transports    = gauge("transports", "Subscribers, by how they are served.", "transport")
	behind        = gauge("cursors_behind", "Subscribers that do not take bytes as fast as they come.")
	deliveries    = counter("deliveries_total", "Events handed to subscribers.")
	sentBytes     = counter("sent_bytes_total", "Bytes handed to subscribers.")
	heartbeats    = counter("heartbeats_total", "Comments that keep streams alive.")
	fanOutSeconds = gauge("fanout_seconds", "From a change to the last subscriber of a group on one event loop.")
	lagSeconds    = gauge("delivery_lag_seconds", "From a change to each subscriber that keeps up.")
	timedOut      = counter("streams_timed_out_total", "Streams cut because their readers took nothing.")
	refused       = counter("subscriptions_refused_total", "Subscriptions answered with an error, by its code.", "code")
	ended         = counter("streams_ended_total", "Streams ended with an error, by its code.", "code")

	http2Held    = gauge("http2_held_bytes", "What clients hold by streams of HTTP/2 under way, as it is counted.")
	http2Refused = counter("http2_refused_total", "Streams of HTTP/2 refused for lack of room, or because of their address.")
	http2Cut     = counter("http2_cut_total", "Streams of HTTP/2 cut because their clients took nothing.")

	sources      = gauge("poll_sources", "Topics polled by this node.")
	polls        = counter("polls_total", "Requests to data sources, by what became of them.", "outcome")
	pollLateness = gauge("poll_lateness_seconds", "How late polls begin.")

	statements  = counter("store_statements_total", "Statements that the database was asked to run.")
	storeErrors = counter("store_errors_total", "Statements that the database failed, by why.", "why")
	storeWrites = gauge("store_writable", "1 if the database takes changes, 0 if not: its disk is full, read-only or broken, or it is away.")
	dataFree    = gauge("data_free_bytes", "What is left on the disk of the embedded database.")
	dataSize    = gauge("data_size_bytes", "How large the disk of the embedded database is.")
	gridErrors  = counter("grid_errors_total", "Calls that the grid failed.", "call")
	usageErrors = counter("usage_flush_errors_total", "Times that usage could not be written down; it was kept.")
	traceSpans  = counter("trace_spans_total", "Spans of traces, by what became of them.", "outcome")
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []metric{
		publications, publishSeconds, diffSeconds, topics, heldBytes, mostHeldBytes, keptBytes, memoryRefusals, uncompressedBytes, packedBytes, connections, transports, behind, deliveries,
		sentBytes, heartbeats, fanOutSeconds, lagSeconds, timedOut, refused, ended, sources, polls, pollLateness, statements, storeErrors,
		storeWrites, dataFree, dataSize,
		gridErrors, usageErrors, traceSpans, http2Held, http2Refused, http2Cut,
	} {
		ch <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	p := m.parts.Load()
	if p == nil {
		return
	}
	c := collection{ch}
	if p.router != nil {
		c.router(p.router.Stats())
	}
	if p.publisher != nil {
		c.send(memoryRefusals, float64(p.publisher.Refused()), "sending")
	}
	if p.subscriber != nil {
		c.subscriber(p)
	}
	if p.poller != nil {
		c.poller(p.poller.Stats())
	}
	c.engines(p)
	if p.streams != nil {
		c.streams(p.streams.Stats())
	}
}

type collection struct{ ch chan<- prometheus.Metric }

func (c collection) send(m metric, value float64, labels ...string) {
	c.ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func (c collection) histogram(m metric, s histogram.Snapshot) {
	c.ch <- prometheus.MustNewConstHistogram(m.desc, s.Count, s.Sum.Seconds(), s.Buckets)
}

func (c collection) router(st router.Stats) {
	for i, name := range router.Verdicts {
		c.send(publications, float64(st.Publications[i]), name)
	}
	c.histogram(publishSeconds, st.Publish)
	c.histogram(diffSeconds, st.Diff)
	c.send(topics, float64(st.Topics))
	c.send(heldBytes, float64(st.Memory))
	c.send(mostHeldBytes, float64(st.MemoryLimit))
	c.send(keptBytes, float64(st.Cached))
	c.send(memoryRefusals, float64(st.Full), "documents")
	c.send(memoryRefusals, float64(st.Busy), "comparing")
	c.send(uncompressedBytes, float64(st.Uncompressed))
	c.send(packedBytes, float64(st.Compressed))
}

func (c collection) subscriber(p *parts) {
	st := p.subscriber.Stats()
	for _, o := range st.Open {
		encoding := "identity"
		if o.Compressed {
			encoding = "compressed"
		}
		c.send(connections, float64(o.Count), o.Mode, encoding)
	}
	for code, n := range st.Refused {
		c.send(refused, float64(n), strconv.Itoa(code))
	}
	for code, n := range st.Ended {
		c.send(ended, float64(n), strconv.Itoa(code))
	}
	fan := p.fanout.Stats()
	c.send(transports, float64(fan.Open-fan.Goroutines), "loop")
	c.send(transports, float64(fan.Goroutines), "goroutine")
	c.send(transports, float64(st.LongPoll), "long-poll")
	c.send(behind, float64(fan.Behind))
	c.send(deliveries, float64(fan.Events))
	c.send(sentBytes, float64(fan.Bytes))
	c.send(heartbeats, float64(fan.Heartbeats))
	c.send(timedOut, float64(fan.TimedOut))
	c.histogram(fanOutSeconds, fan.FanOut)
	c.histogram(lagSeconds, fan.Lag)
}

func (c collection) streams(st httpkit.StreamStats) {
	c.send(http2Held, float64(st.Held))
	c.send(http2Refused, float64(st.Refused))
	c.send(http2Cut, float64(st.Cut))
}

func (c collection) poller(st poll.Stats) {
	c.send(sources, float64(st.Sources))
	for i, name := range poll.Outcomes {
		c.send(polls, float64(st.Polls[i]), name)
	}
	buckets := make(map[float64]uint64, len(poll.LatenessBounds))
	count := uint64(0)
	for i, n := range st.Lateness {
		count += n
		if i < len(poll.LatenessBounds) {
			buckets[poll.LatenessBounds[i].Seconds()] = count
		}
	}
	c.ch <- prometheus.MustNewConstHistogram(pollLateness.desc, count, st.LatenessSum.Seconds(), buckets)
}

func (c collection) engines(p *parts) {
	if p.store != nil {
		c.send(statements, float64(p.store.Statements()))
		f := p.store.Failures()
		c.send(storeErrors, float64(f.Away), "away")
		c.send(storeErrors, float64(f.Full), "full")
		c.send(storeErrors, float64(f.ReadOnly), "read_only")
		c.send(storeErrors, float64(f.Broken), "io")
		c.send(storeErrors, float64(f.Contention), "contention")
		c.send(storeErrors, float64(f.Unknown), "unknown")
		c.disk(p.store)
	}
	if g := p.grid; g != nil {
		for i, name := range gridCalls {
			c.send(gridErrors, float64(g.errors[i].Load()), name)
		}
	}
	if p.usage != nil {
		c.send(usageErrors, float64(p.usage.Failures()))
	}
	sent, dropped := p.tracer.Stats()
	c.send(traceSpans, float64(sent), "sent")
	c.send(traceSpans, float64(dropped), "dropped")
}

func (c collection) disk(s *store.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	writable := 1.0
	if _, err := s.Health(ctx); err != nil {
		writable = 0
	}
	c.send(storeWrites, writable)
	if space, known := s.Space(); known {
		c.send(dataFree, float64(space.Free))
		c.send(dataSize, float64(space.Total))
	}
}
