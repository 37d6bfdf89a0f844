// Package jetstream is the grid of a cluster: documents, values and counters in streams of NATS JetStream, presence and news over
// plain NATS. Nodes speak to NATS only, never to each other.
//
// Everything is safe for concurrent use.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/nats-io/nats.go"
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

// Grid is the grid of a cluster: documents, claims and counters in JetStream, presence and news over plain NATS.
//
// Each topic's newest document is the one message of its subject, written on condition of the sequence it replaces: that
// orders publications. The stream repeats it on another subject, to which the nodes that serve the topic listen. Such a
// message may get lost, so what they hold is compared with the stream every two seconds and after every fault.
type Grid struct {
	// Static after Open.
	opts       Options
	log        *slog.Logger
	node       string
	writer     uint32 // its short name in documents
	conn       *nats.Conn
	maxPayload int
	inbox      []chan *nats.Msg // news of documents, one for each worker; a topic always has the same
	stop       context.CancelFunc
	ctx        context.Context // ends with Close
	wg         sync.WaitGroup

	began  time.Time
	fault  atomic.Int64 // when there last was one, in nanoseconds since began; clocks that are set do not matter
	lost   atomic.Bool  // something may have been missed: compare now
	proven atomic.Int64 // when a majority last answered, in Unix nanoseconds
	excuse atomic.Value // error; why none did since

	// Guarded by mu. No other lock is taken while it is held.
	mu     sync.Mutex
	slots  map[string]*topicSlot
	closed bool

	epochs   *grid.Epochs
	repairs  repairs
	presence natsPresence
	notices  natsNotices
	claims   natsClaims
	counters natsCounters
	purses   purses
	clock    natsClock
	nodes    natsNodes

	refreshes perSecond
}

// Open connects to the servers and makes sure that the streams are there. Its errors are *freshet.Error with one
// sentence for the person who starts the server.
func Open(ctx context.Context, opts Options) (*Grid, error) {
	return open(ctx, opts, time.Now)
}

func open(ctx context.Context, opts Options, clock func() time.Time) (*Grid, error) {
	n := newGrid(opts)
	n.clock.local = clock
	ctx, cancel := context.WithTimeout(ctx, n.opts.StartTimeout)
	defer cancel()
	if err := n.connect(ctx); err != nil {
		return nil, err
	}
	if err := n.prepare(ctx); err != nil {
		_ = n.Close() // the first error is the one to tell
		return nil, err
	}
	n.proven.Store(time.Now().UnixNano())
	n.begin()
	return n, nil
}

func newGrid(opts Options) *Grid {
	if opts.Prefix == "" {
		opts.Prefix = defaultPrefix
	}
	if opts.Streams <= 0 {
		opts.Streams = 1
	}
	if opts.StartTimeout <= 0 {
		opts.StartTimeout = defaultStartTimeout
	}
	n := &Grid{opts: opts, log: opts.Log, node: freshet.NewID(), began: time.Now(), slots: make(map[string]*topicSlot)}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.writer = writerOf(n.node)
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.epochs = grid.NewEpochs(4)
	n.repairs.init()
	n.presence.init()
	n.claims.init()
	n.counters.init()
	n.nodes.init()
	return n
}

// prepare checks the servers and listens to what every node hears.
func (n *Grid) prepare(ctx context.Context) error {
	if err := n.checkServer(); err != nil {
		return err
	}
	if err := n.ensureStreams(ctx); err != nil {
		return err
	}
	n.readClock(ctx)
	for range workers {
		n.inbox = append(n.inbox, make(chan *nats.Msg, inboxLen))
	}
	return errors.Join(n.listenNotices(ctx), n.listenPresence(), n.listenNodes(ctx))
}

func (n *Grid) begin() {
	for _, inbox := range n.inbox {
		n.wg.Go(func() { n.hear(inbox) })
	}
	n.wg.Go(n.beat)
	n.wg.Go(n.repair)
	n.wg.Go(n.sendNotices)
	n.wg.Go(n.answerPresence)
}

// spawn runs fn until it returns, which must be soon after Close. It does nothing once the grid is closed.
func (n *Grid) spawn(fn func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.wg.Go(fn)
	}
	return !n.closed
}

// Close implements grid.Grid.
func (n *Grid) Close() error {
	n.mu.Lock()
	n.closed = true
	slots := n.slots
	n.slots = make(map[string]*topicSlot)
	n.mu.Unlock()
	n.stop()
	n.wg.Wait()
	for _, s := range slots {
		s.mu.Lock()
		s.watches = nil
		s.disarm()
		s.mu.Unlock()
	}
	n.presence.close()
	n.sayNode("bye")
	closed := make(chan struct{})
	n.conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if n.conn.IsClosed() {
		return nil
	}
	n.conn.Close()
	<-closed
	return nil
}

// proofAge is how long a node may be without the answer of a majority before it calls itself unfit.
const proofAge = 6 * time.Second

// Check returns an error while the servers have not proven for some time that they can store anything.
func (n *Grid) Check(context.Context) error {
	age := time.Since(time.Unix(0, n.proven.Load()))
	if age < proofAge {
		return nil
	}
	cause, _ := n.excuse.Load().(error)
	if cause == nil {
		cause = errors.New("no answer")
	}
	return freshet.Wrap(freshet.Unavailable, cause, fmt.Sprintf("NATS stored nothing for %d s: %v", int(age.Seconds()), cause))
}

// faulty notes a fault: the link was lost or is new, or no majority answered.
func (n *Grid) faulty() { n.fault.Store(int64(time.Since(n.began))) }

// sinceFault is how long ago the last fault was, or the start.
func (n *Grid) sinceFault() time.Duration {
	return time.Since(n.began) - time.Duration(n.fault.Load())
}

// shards is into how many parts topics are divided, so that streams can be split without renaming subjects.
const shards = 256

func shardOf(topic string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(topic))
	return h.Sum32() % shards
}

// token makes a name safe to stand in a subject. Names of topics are so already.
func token(name string) string {
	safe := name != "" && len(name) <= 64
	for i := range len(name) {
		c := name[i]
		safe = safe && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_')
	}
	if safe {
		return name
	}
	return "=" + grid.Digest(name)
}

// Subjects. Documents stand below doc, what is too long for one message below part; the stream repeats documents below new.
func (n *Grid) subject(kind string, rest ...string) string {
	return n.opts.Prefix + "." + kind + "." + strings.Join(rest, ".")
}

func (n *Grid) docSubject(topic string) string {
	return n.subject("doc", shardToken(shardOf(topic)), token(topic))
}

func (n *Grid) newSubject(topic string) string {
	return n.subject("new", shardToken(shardOf(topic)), token(topic))
}

func shardToken(shard uint32) string { return fmt.Sprintf("%02x", shard) }

// streamOf returns the name of the stream that holds a subject.
func (n *Grid) streamOf(subject string) string {
	rest := strings.TrimPrefix(subject, n.opts.Prefix+".")
	kind, rest, _ := strings.Cut(rest, ".")
	if kind != "doc" && kind != "part" && kind != "beat" {
		return n.valuesStream()
	}
	shard, _, _ := strings.Cut(rest, ".")
	var number uint32
	_, _ = fmt.Sscanf(shard, "%02x", &number)
	return n.docStream(int(number) * n.opts.Streams / shards)
}
