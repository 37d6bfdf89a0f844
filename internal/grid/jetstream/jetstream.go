package jetstream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/freshet-io/freshet"
)

// Options say where the servers are and how they keep things. Zero values mean the defaults.
type Options struct {
	URL         string // one or more, separated by commas
	Credentials string // file with a user's credentials, if the servers want one
	CA          string // PEM file with the authorities that servers' certificates are checked against, instead of the system's
	Certificate string // PEM file with this client's certificate
	Key         string // PEM file with its key

	User     string // if it is not in the URL
	Password freshet.Secret

	// InProcess connects to a server in this process. URL is not used then.
	InProcess interface {
		InProcessConn() (net.Conn, error)
	}

	Prefix   string // of subjects and streams, so that several services can share the servers; "freshet" by default
	Memory   bool   // keep streams in memory, not in files: quicker, and gone when the servers restart
	Servers  int    // how many there are, if that is known; it bounds the default of Replicas
	Replicas int    // of each stream; by default 3 in a cluster of servers and 1 on a single one
	Streams  int    // over which documents are spread: a power of two up to 16; 1 by default
	MaxBytes int64  // of each stream with documents; 0 does not bound it

	// MessageTTL drops a document that long after its publication. 0 keeps it.
	MessageTTL time.Duration

	// StartTimeout is how long to wait for the servers at the start; one minute by default.
	StartTimeout time.Duration

	Log *slog.Logger
}

const (
	defaultPrefix       = "freshet"
	defaultStartTimeout = time.Minute
)

func (o Options) withDefaults() *Options {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if o.Streams <= 0 {
		o.Streams = 1
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &o
}

// Grid is the grid of a cluster, as one node sees it. Each part fulfils one contract of package grid.
type Grid struct {
	*documents
	*presence
	*notices
	*values
	*counters
	*reservations
	*questions
	*health

	link      *link
	streams   *streams
	heartbeat *heartbeat
}

// Open connects to the servers and makes sure that the streams are there. Its errors are *freshet.Error with one
// sentence for the person who starts the server.
func Open(ctx context.Context, opts Options) (*Grid, error) { return open(ctx, opts, time.Now) }

func open(ctx context.Context, opts Options, local func() time.Time) (*Grid, error) {
	o := opts.withDefaults()
	g := newGrid(o, local)
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	// After a new connection the others may have taken this node as gone, and so may it them.
	err := g.link.connect(ctx, o, func() { g.questions.members.say("hello") })
	if err == nil {
		err = g.prepare(ctx)
	}
	if err != nil {
		_ = g.Close() // the first error is the one to tell
		return nil, err
	}
	g.health.succeeded()
	g.begin()
	return g, nil
}

func newGrid(opts *Options, local func() time.Time) *Grid {
	l := newLink(opts)
	g := &Grid{link: l, streams: newStreams(l, opts), health: &health{}, questions: newQuestions(l)}
	life := &lifetime{ttl: opts.MessageTTL, clock: &clock{stream: g.streams.documents[0], local: local}}
	g.documents = newDocuments(g.streams, life, g.health)
	g.presence = newPresence(l, g.questions)
	g.notices = newNotices(g.streams.values, g.questions)
	g.values = newValues(g.streams.values)
	g.counters = newCounters(g.streams.values)
	g.reservations = newReservations(g.counters)
	g.heartbeat = newHeartbeat(g.streams, life.clock, g.health, g.documents.suspectAll)
	return g
}

// prepare makes the streams and listens to what every node hears.
func (g *Grid) prepare(ctx context.Context) error {
	if err := g.streams.ensure(ctx); err != nil {
		return err
	}
	g.heartbeat.clock.ask(ctx)
	return errors.Join(g.notices.listen(ctx), g.presence.listen(), g.questions.listen(ctx))
}

func (g *Grid) begin() {
	for _, inbox := range g.documents.inbox {
		g.link.tasks.spawn(func() { g.documents.run(inbox) })
	}
	g.link.tasks.spawn(g.heartbeat.run)
	g.link.tasks.spawn(g.repair)
	g.link.tasks.spawn(g.notices.run)
	g.link.tasks.spawn(g.presence.run)
}

// repair finds what got lost, every two seconds and after a fault, and repeats what others may have missed.
func (g *Grid) repair() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-g.link.tasks.ctx.Done():
			return
		case <-g.link.faults.wake:
		case <-ticker.C:
		}
		g.documents.repair(g.link.faults.takeLost())
		g.notices.catchUp()
		g.presence.announceAgain()
		g.questions.members.say("here")
	}
}

// Close implements grid.Grid.
func (g *Grid) Close() error {
	slots := g.documents.topics.close()
	g.link.tasks.close()
	for _, s := range slots {
		s.close()
	}
	g.presence.close()
	g.questions.members.say("bye")
	g.link.close()
	return nil
}
