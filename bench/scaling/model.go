package main

import (
	"fmt"
	"math"
	"time"
)

// load is what the installation has to carry.
type load struct {
	Subscribers      float64
	Topics           float64
	ChangesPerMinute float64 // per topic
	DocumentBytes    float64
	PatchBytes       float64
	Compression      float64
	Heartbeat        time.Duration
	Session          time.Duration
	Storm            time.Duration
	Regions          float64
}

// machine is one subscriber node. API nodes are the same.
type machine struct {
	Cores       float64
	MemoryGB    float64
	NetworkGbps float64
	Connections float64
	Headroom    float64 // part of every resource that stays free
}

// figures are what one machine was measured to need; docs/scaling.md says how.
type figures struct {
	SubscriberKB    float64
	SocketKB        float64
	WriteMicros     float64
	PostMicros      float64
	FollowMicros    float64
	ConnectMicros   float64
	StreamPerSecond float64
}

type prices struct{ NodeHour, GB float64 }

type input struct {
	Load    load
	Machine machine
	Figures figures
	Prices  prices
}

const (
	eventOverhead  = 60  // bytes of id, event name and framing around a patch
	packetOverhead = 66  // bytes of Ethernet, IP and TCP headers; each write is a packet, and its acknowledgement comes the other way
	heartbeatBytes = 4   // bytes of the comment
	topicKB        = 64  // KB a node keeps per topic besides documents: history, frames, index; with the next, 76 KB for what was measured as 68
	documentCopies = 3   // of a document on a node: text, its index, the share of the history
	headerBytes    = 400 // of the response to a new connection
)

// bound is how many subscriber nodes one resource asks for.
type bound struct {
	Resource string
	Nodes    float64
	Of       string // what there is of it, for people
}

// estimate is what an installation needs.
type estimate struct {
	PublicationsPerSecond float64
	DeliveriesPerSecond   float64
	HeartbeatsPerSecond   float64
	ConnectsPerSecond     float64 // as sessions begin and end

	Bounds          []bound
	SubscriberNodes float64 // per region, with one to spare
	PerNode         float64 // subscribers on a node when all are there
	NodeCores       float64 // busy on each
	NodeGbps        float64 // out of each
	NodeMemoryGB    float64

	StormPerSecond float64 // connections that each node takes after one is lost
	StormCores     float64 // of each node, meanwhile

	APINodes    float64
	NATSStreams float64
	NATSGbps    float64 // out of all servers of a region

	EgressGbps   float64
	EgressTB     float64 // per month
	MonthlyNodes float64
	MonthlyBytes float64
}

func (in *input) validate() error {
	for _, c := range []struct {
		name  string
		value float64
		least float64
	}{
		{"subscribers", in.Load.Subscribers, 1}, {"topics", in.Load.Topics, 1}, {"changes", in.Load.ChangesPerMinute, 0},
		{"document", in.Load.DocumentBytes, 1}, {"patch", in.Load.PatchBytes, 1}, {"compression", in.Load.Compression, 1},
		{"heartbeat", in.Load.Heartbeat.Seconds(), 0.1}, {"session", in.Load.Session.Seconds(), 1}, {"storm", in.Load.Storm.Seconds(), 1},
		{"regions", in.Load.Regions, 1}, {"cores", in.Machine.Cores, 0.1}, {"memory", in.Machine.MemoryGB, 0.1},
		{"network", in.Machine.NetworkGbps, 0.001}, {"connections", in.Machine.Connections, 1}, {"kb", in.Figures.SubscriberKB, 0},
		{"socket-kb", in.Figures.SocketKB, 0}, {"write", in.Figures.WriteMicros, 0.01}, {"post", in.Figures.PostMicros, 0},
		{"follow", in.Figures.FollowMicros, 0}, {"connect", in.Figures.ConnectMicros, 0}, {"stream", in.Figures.StreamPerSecond, 1},
		{"price-node", in.Prices.NodeHour, 0}, {"price-gb", in.Prices.GB, 0}, {"headroom", in.Machine.Headroom, 0},
	} {
		if math.IsNaN(c.value) || math.IsInf(c.value, 0) || c.value < c.least {
			return fmt.Errorf("-%s must be a number of at least %v, not %v", c.name, c.least, c.value)
		}
	}
	if in.Machine.Headroom >= 1 {
		return fmt.Errorf("-headroom must be below 1, not %v: it is the part that stays free", in.Machine.Headroom)
	}
	return nil
}

// plan adds nodes until every resource suffices. It searches because nodes cost work themselves: each follows every topic that
// one of its subscribers wants.
func (in *input) plan() (estimate, error) {
	if err := in.validate(); err != nil {
		return estimate{}, err
	}
	w := &in.Load
	r := estimate{PublicationsPerSecond: w.Topics * w.ChangesPerMinute / 60}
	r.DeliveriesPerSecond = w.Subscribers * w.ChangesPerMinute / 60
	r.HeartbeatsPerSecond = w.Subscribers / w.Heartbeat.Seconds() * silence(w)
	r.ConnectsPerSecond = w.Subscribers / w.Session.Seconds()

	nodes := 1.0
	for {
		r.Bounds = in.bounds(&r, nodes)
		need := 0.0
		for _, b := range r.Bounds {
			need = max(need, b.Nodes)
		}
		if need <= nodes {
			break
		}
		if nodes = math.Max(need, nodes+1); nodes > 1e6 {
			return estimate{}, fmt.Errorf("no number of such nodes suffices: following the topics alone is too much for one; take larger ones, or split the topics over installations")
		}
	}
	in.finish(&r, nodes)
	return r, nil
}

// silence is the part of heartbeat intervals without an event: a heartbeat is sent only after silence. Changes come as they will, so
// the chance of none is that of a Poisson process.
func silence(w *load) float64 {
	return math.Exp(-w.ChangesPerMinute / 60 * w.Heartbeat.Seconds())
}

// followed is how many topics a node follows: those that at least one of its subscribers wants, if subscribers come to nodes at random.
func (w *load) followed(nodes float64) float64 {
	perTopicHere := w.Subscribers / w.Regions / w.Topics / nodes
	return w.Topics * (1 - math.Exp(-perTopicHere))
}

// cpu is the work of a region's node in cores, if it has its share of everything.
func (in *input) cpu(r *estimate, nodes float64) float64 {
	f, w := &in.Figures, &in.Load
	share := w.Regions * nodes
	writes := (r.DeliveriesPerSecond + r.HeartbeatsPerSecond) / share
	follow := w.followed(nodes) * w.ChangesPerMinute / 60
	return (writes*f.WriteMicros + r.ConnectsPerSecond/share*f.ConnectMicros + follow*f.FollowMicros) / 1e6
}

func (in *input) memoryGB(nodes float64) float64 {
	f, w := &in.Figures, &in.Load
	subscribers := w.Subscribers / w.Regions / nodes * (f.SubscriberKB + f.SocketKB) * 1e3
	topics := w.followed(nodes) * (topicKB*1e3 + documentCopies*w.DocumentBytes)
	return (subscribers + topics) / 1e9
}

// gbps is what leaves a node.
func (in *input) gbps(r *estimate, nodes float64) float64 {
	w := &in.Load
	bytes := r.DeliveriesPerSecond*(w.PatchBytes/w.Compression+eventOverhead+packetOverhead) +
		r.HeartbeatsPerSecond*(heartbeatBytes+packetOverhead) +
		r.ConnectsPerSecond*(w.DocumentBytes/w.Compression+headerBytes+packetOverhead)
	return bytes / (w.Regions * nodes) * 8 / 1e9
}

// bounds asks each resource how many nodes it wants, given that there are as many as now.
func (in *input) bounds(r *estimate, nodes float64) []bound {
	m := &in.Machine
	free := 1 - m.Headroom
	more := func(used, has float64) float64 { return math.Ceil(nodes*used/(has*free) - 1e-9) }
	return []bound{
		{"connections", math.Ceil(in.Load.Subscribers / in.Load.Regions / m.Connections), fmt.Sprintf("%.0f a node", m.Connections)},
		{"memory", more(in.memoryGB(nodes), m.MemoryGB), fmt.Sprintf("%v GB", m.MemoryGB)},
		{"CPU", more(in.cpu(r, nodes), m.Cores), fmt.Sprintf("%v cores", m.Cores)},
		{"network", more(in.gbps(r, nodes), m.NetworkGbps), fmt.Sprintf("%v Gbit/s", m.NetworkGbps)},
	}
}

// hoursPerMonth is the mean.
const hoursPerMonth = 730.5

func (in *input) finish(r *estimate, nodes float64) {
	w, m, f := &in.Load, &in.Machine, &in.Figures
	r.SubscriberNodes = nodes + 1 // one may be gone, for a failure or an upgrade
	r.PerNode = w.Subscribers / w.Regions / r.SubscriberNodes
	r.NodeCores, r.NodeGbps, r.NodeMemoryGB = in.cpu(r, r.SubscriberNodes), in.gbps(r, r.SubscriberNodes), in.memoryGB(r.SubscriberNodes)
	r.StormPerSecond = r.PerNode / w.Storm.Seconds() / nodes
	r.StormCores = r.StormPerSecond * f.ConnectMicros / 1e6

	r.APINodes = math.Max(2, math.Ceil(r.PublicationsPerSecond*f.PostMicros/1e6/(m.Cores*(1-m.Headroom))))
	r.NATSStreams = math.Max(1, math.Ceil(r.PublicationsPerSecond/f.StreamPerSecond))
	followedPerSecond := r.SubscriberNodes * w.followed(r.SubscriberNodes) * w.ChangesPerMinute / 60
	r.NATSGbps = followedPerSecond * (w.DocumentBytes/w.Compression + packetOverhead) * 8 / 1e9

	r.EgressGbps = r.NodeGbps * r.SubscriberNodes * w.Regions
	r.EgressTB = r.EgressGbps / 8 * 3600 * hoursPerMonth / 1e3
	r.MonthlyNodes = (r.SubscriberNodes*w.Regions + r.APINodes) * in.Prices.NodeHour * hoursPerMonth
	r.MonthlyBytes = r.EgressTB * 1e3 * in.Prices.GB
}
