package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	gridmemory "github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/poll"
	"github.com/freshet-io/freshet/internal/router"
)

// directory stands for the catalog: topics of some hosts, each with a URL of its own. The database is not what is measured.
type directory struct {
	port  string
	hosts int
	every time.Duration
	ids   []string
}

func newDirectory(port string, hosts, n int) *directory {
	d := &directory{port: port, hosts: hosts}
	for range n {
		d.ids = append(d.ids, freshet.NewID())
	}
	slices.Sort(d.ids)
	return d
}

func (d *directory) topic(id string) freshet.Topic {
	at, _ := slices.BinarySearch(d.ids, id)
	at %= d.hosts
	host := fmt.Sprintf("127.0.%d.%d:%s", at/250, 1+at%250, d.port)
	return freshet.Topic{ID: id, AppID: "app", Name: "Topic " + id, Publisher: freshet.Publisher{
		Type: freshet.HTTPPoller, URL: "http://" + host + "/topics/" + id, PollEvery: &d.every, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
	}}
}

func (d *directory) Source(_ context.Context, id string) (*catalog.Source, error) {
	return &catalog.Source{Topic: d.topic(id)}, nil
}

func (d *directory) PollerTopics(_ context.Context, after string, limit int) ([]freshet.Topic, error) {
	i, found := slices.BinarySearch(d.ids, after)
	if found {
		i++
	}
	var all []freshet.Topic
	for _, id := range d.ids[i:min(i+limit, len(d.ids))] {
		all = append(all, d.topic(id))
	}
	return all, nil
}

func (d *directory) Retire(context.Context, string, func(context.Context) (bool, error)) error {
	return nil
}

// node is what a polling process is made of.
type node struct {
	grid   *gridmemory.Grid
	router *router.Router
	poller *poll.Poller
}

func newNode(d *directory) *node {
	n := &node{grid: gridmemory.New(gridmemory.Options{})}
	n.router = router.New(n.grid, router.Options{})
	n.poller = poll.New(poll.Parts{Catalog: d, Router: n.router, Grid: n.grid},
		poll.Options{Version: "bench", HostConcurrency: 256, Concurrency: 4096})
	return n
}

func (n *node) close() {
	_ = n.poller.Close()
	_ = n.router.Close()
	_ = n.grid.Close()
}

// join subscribes to every topic, the way a subscriber node tells it.
func (n *node) join(d *directory) error {
	for _, id := range d.ids {
		if _, err := n.grid.Join(context.Background(), id); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) polled() (all uint64) {
	for _, count := range n.poller.Stats().Polls {
		all += count
	}
	return all
}

func measure(o options) error {
	port, stop, err := startOrigin()
	if err != nil {
		return err
	}
	defer stop()
	d := newDirectory(port, o.hosts, o.targets)
	if err := memory(d, "idle (polled once, waiting)  ", time.Hour, o, false); err != nil {
		return err
	}
	if err := memory(d, "active (polled all the time) ", o.every, o, true); err != nil {
		return err
	}
	return nil
}

// inUse is what the process holds, in bytes, after a collection: objects, and stacks of goroutines.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// memory has every topic polled at the interval and prints what one costs. While load is asked for, the rest is measured too.
func memory(d *directory, name string, every time.Duration, o options, load bool) error {
	d.every = every
	before := inUse()
	n := newNode(d)
	defer n.close()
	if err := n.join(d); err != nil {
		return err
	}
	for n.polled() < uint64(o.targets) {
		time.Sleep(50 * time.Millisecond)
	}
	if load {
		time.Sleep(o.warmUp)
		if err := window(n, o); err != nil {
			return err
		}
	}
	fmt.Printf("memory per topic, %s %5.2f KiB\n", name, float64(inUse()-before)/1024/float64(o.targets))
	if n.poller.Stats().Polls[3] > 0 { // failed
		return fmt.Errorf("%d polls failed", n.poller.Stats().Polls[3])
	}
	return nil
}

func window(n *node, o options) error {
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	before, cpu, start := n.poller.Stats(), processor(), time.Now()
	goroutines := 0
	for time.Since(start) < o.window {
		time.Sleep(time.Second)
		goroutines = max(goroutines, runtime.NumGoroutine())
	}
	took, used, after := time.Since(start), processor()-cpu, n.poller.Stats()
	polls := uint64(0)
	for i := range after.Polls {
		polls += after.Polls[i] - before.Polls[i]
	}
	fmt.Printf("targets                       %d every %v, on %d processors\n", o.targets, o.every, runtime.NumCPU())
	fmt.Printf("polls                         %.0f per second, %.1f %% answered 304\n", float64(polls)/took.Seconds(),
		100*float64(after.Polls[2]-before.Polls[2])/float64(polls))
	fmt.Printf("cores used by the poller      %.2f\n", used.Seconds()/took.Seconds())
	fmt.Printf("goroutines at most            %d\n", goroutines)
	printLateness(&before, &after)
	return nil
}

func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// printLateness prints how many polls were later than each bound, and between which bounds the percentiles lie.
func printLateness(before, after *poll.Stats) {
	total := uint64(0)
	for i := range after.Lateness {
		total += after.Lateness[i] - before.Lateness[i]
	}
	bound := func(i int) string {
		if i < len(poll.LatenessBounds) {
			return poll.LatenessBounds[i].String()
		}
		return "more"
	}
	var parts []string
	seen := uint64(0)
	marks := []float64{0.5, 0.99, 0.999}
	for i := range after.Lateness {
		seen += after.Lateness[i] - before.Lateness[i]
		for len(marks) > 0 && float64(seen) >= marks[0]*float64(total) {
			parts = append(parts, fmt.Sprintf("p%g ≤ %s", 100*marks[0], bound(i)))
			marks = marks[1:]
		}
	}
	fmt.Printf("lateness of polls             %s\n", strings.Join(parts, ", "))
}
