package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

var (
	topics      = flag.Int("topics", 10, "topics of each server")
	subscribers = flag.Int("subscribers", 500, "subscribers of each topic")
	every       = flag.Duration("every", 10*time.Millisecond, "time between two publications to a topic")
	turn        = flag.Duration("turn", 300*time.Millisecond, "how long a server has its turn")
	turns       = flag.Int("turns", 40, "turns of each server")
	limit       = flag.Float64("limit", 0, "fail if metering costs more percent than this; 0 does not")
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "read" {
		read(os.Args[2], os.Args[3])
		return
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// read is the other process: so many subscribers of each topic.
func read(address, count string) {
	n, err := strconv.Atoi(count)
	if err != nil {
		panic(err)
	}
	for i := range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
		go func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 32<<10))
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other end is gone
}

// server is one of the two.
type server struct {
	fan    *fanout.Fanout
	router *router.Router
	topics []freshet.Topic
	count  func(topic int) // a publication was taken
	cpu    []float64       // of each turn: nanoseconds for a delivery
	user   []float64       // of them, those outside of the kernel
	n      int             // publications to each topic so far
	late   int             // turns that came to more than one event for several publications
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "metering")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, store.Location{Dir: dir})
	if err != nil {
		return err
	}
	defer db.Close()
	meter := usage.New(db, usage.Options{})
	defer func() { _ = meter.Close(context.WithoutCancel(ctx)) }()
	on, err := newServer(ctx, meter)
	if err != nil {
		return err
	}
	defer on.fan.Close()
	off, err := newServer(ctx, nil)
	if err != nil {
		return err
	}
	defer off.fan.Close()
	for i := range *turns {
		order := []*server{on, off}
		if i%2 == 1 {
			slices.Reverse(order) // so that neither is always first
		}
		for _, s := range order {
			if err := s.turn(ctx, s == on); err != nil {
				return err
			}
		}
	}
	return report(on, off)
}

func report(on, off *server) error {
	ratios := make([]float64, len(on.cpu))
	for i := range ratios {
		ratios[i] = 100 * (on.cpu[i]/off.cpu[i] - 1)
	}
	rate := float64(*topics**subscribers) / every.Seconds()
	cost := 100 * (median(on.user) - median(off.user)) / median(off.cpu)
	fmt.Printf("%d topics with %d subscribers each, %.0f deliveries/s, %d turns of %v each\n", *topics, *subscribers, rate, *turns, *turn)
	fmt.Printf("processor time for a delivery, median of turns: %.0f ns with metering and metrics, %.0f ns without\n", median(on.cpu), median(off.cpu))
	fmt.Printf("turns side by side differ by %.2f %%; half of them between %.2f %% and %.2f %%\n",
		median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75))
	// Counting makes no system calls but a few writes to the database every ten seconds, and what the kernel takes to send varies
	// more than all of it. So time outside of the kernel tells more exactly.
	fmt.Printf("outside of the kernel: %.0f ns with, %.0f ns without; metering and metrics cost %.2f %% of a delivery\n", median(on.user), median(off.user), cost)
	if on.late+off.late > 0 {
		fmt.Printf("in %d and %d turns subscribers fell behind, and got several publications as one event\n", on.late, off.late)
	}
	if *limit > 0 && cost > *limit {
		return fmt.Errorf("that is more than %.2f %%", *limit)
	}
	return nil
}

func median(all []float64) float64 { return quantile(all, 0.5) }

func quantile(all []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1))]
}

// newServer is one that counts with the meter, or one that counts and measures nothing if there is none.
func newServer(ctx context.Context, meter *usage.Meter) (*server, error) {
	fan, err := fanout.New(fanout.Options{Unmeasured: meter == nil})
	if err != nil {
		return nil, err
	}
	s := &server{fan: fan, router: router.New(memory.New(memory.Options{}), router.Options{}), count: func(int) {}}
	var groups []*fanout.Group
	var places []usage.Place
	for i := range *topics {
		topic := freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
		s.topics = append(s.topics, topic)
		feed, err := s.router.Subscribe(ctx, &topic, router.Variant{Event: "snapshot"})
		if err != nil {
			return nil, err
		}
		group := fan.NewGroup(feed, false, func() {})
		group.Tag = feed
		if meter != nil {
			places = append(places, usage.Place{TopicID: topic.ID, AppID: "app", UserID: "user"})
			counter := meter.Counter(places[i])
			counter.Connect(int64(*subscribers))
			group.Sent = func(sent fanout.Sent) { // as the subscriber interface does it
				if sent.Bytes > 0 {
					counter.Sent(sent.Events, sent.Bytes, sent.Full)
				}
				if sent.Prompt > 0 {
					counter.Late(sent.Lag, sent.Prompt)
				}
			}
		}
		groups = append(groups, group)
	}
	if meter != nil {
		s.count = func(i int) { meter.Add(places[i], freshet.Usage{Publications: 1}) }
	}
	return s, s.connect(ctx, groups)
}

// connect has the other process subscribe, and waits until all are there.
func (s *server) connect(ctx context.Context, groups []*fanout.Group) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	head := fanout.NewHeader(http.Header{"Content-Type": {"text/event-stream"}})
	go func() {
		_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // our own clients
			n, _ := strconv.Atoi(r.URL.Path[1:])
			g := groups[n%len(groups)]
			s.fan.Serve(w, r, fanout.Stream{Group: g, Header: head, First: g.Tag.(*router.Feed).Begin("")})
		}))
	}()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	count := *topics * *subscribers
	other := exec.CommandContext(ctx, self, "read", ln.Addr().String(), strconv.Itoa(count))
	other.Stderr = os.Stderr
	if _, err := other.StdinPipe(); err != nil { // it ends when we do
		return err
	}
	if err := other.Start(); err != nil {
		return err
	}
	for s.fan.Stats().Open < int64(count) {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return pause(ctx, time.Second) // until loops know them all
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// turn publishes for a while, waits until everything is delivered, and divides the processor time by the deliveries.
func (s *server) turn(ctx context.Context, scraped bool) error {
	before := s.delivered()
	began, beganUser := cpuTime()
	ticks := int(*turn / *every)
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for range ticks {
		<-tick.C
		s.n++
		if err := s.publish(ctx); err != nil {
			return err
		}
	}
	if scraped { // as Prometheus would, more often
		_, _ = s.fan.Stats(), s.router.Stats()
	}
	want := before + uint64(ticks**topics**subscribers)
	for last, still := uint64(0), 0; still < 5; {
		now := s.delivered()
		if now >= want {
			break
		}
		if now == last {
			still++ // somebody got several as one
		}
		last = now
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	got := s.delivered() - before
	if got < want-before {
		s.late++
	}
	ended, endedUser := cpuTime()
	s.cpu = append(s.cpu, float64(ended-began)/float64(got))
	s.user = append(s.user, float64(endedUser-beganUser)/float64(got))
	return nil
}

// delivered is counted in any case, once a round of an event loop.
func (s *server) delivered() uint64 { return s.fan.Stats().Events }

func (s *server) publish(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"symbol":"ACME","name":"%s","price":%d.25,"at":%d}`, bytes.Repeat([]byte("x"), 200), s.n, s.n)
	for i := range s.topics {
		if _, err := s.router.Publish(ctx, &s.topics[i], router.Publication{Body: bytes.Clone(body)}); err != nil {
			return err
		}
		s.count(i)
	}
	return nil
}

func cpuTime() (all, user time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), time.Duration(u.Utime.Nano())
}
