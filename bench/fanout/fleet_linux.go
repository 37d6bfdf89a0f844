package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/freshet-io/freshet/internal/histogram"
)

// fleet is many subscribers of one server. Each of its threads owns a part of them.
type fleet struct {
	opts    fleetOptions
	threads []*thread
	open    atomic.Bool   // everybody is connected
	window  atomic.Int32  // for which percentiles deliveries count: those of window 1 or 2; 0: none
	final   atomic.Uint32 // the number of the last publication
	stop    atomic.Bool
	done    sync.WaitGroup
}

type fleetOptions struct {
	address   netip.AddrPort
	requests  [][]byte // the whole GET; each is sent by as many
	size      int
	parallel  int // connections being opened at a time
	witnesses int // subscribers that check every byte
}

// generatorThreads is two on small machines too: one of them would be the bottleneck.
const generatorThreads = 2

// tally is what a thread has seen.
type tally struct {
	Ready     int64 // streams whose header is complete
	Failed    int64 // could not be opened, or answered by another status than 200
	Retried   int64 // connections that did not work out and were made again
	Closed    int64 // ended by the server after everybody was connected
	Events    int64 // publications received
	Bytes     int64 // from the socket, header and framing included
	Disorder  int64 // publications of one publisher that came twice or in the wrong order
	Malformed int64
	Finals    int64 // subscribers that have the last publication
}

func (t *tally) add(o *tally) {
	t.Ready += o.Ready
	t.Failed += o.Failed
	t.Retried += o.Retried
	t.Closed += o.Closed
	t.Events += o.Events
	t.Bytes += o.Bytes
	t.Disorder += o.Disorder
	t.Malformed += o.Malformed
	t.Finals += o.Finals
}

// openFleet connects everybody and waits until all have an answer.
func openFleet(ctx context.Context, opts fleetOptions) (*fleet, time.Duration, error) {
	c := &fleet{opts: opts}
	began := time.Now()
	for i := range generatorThreads {
		t, err := newThread(c, i, (opts.size+generatorThreads-1-i)/generatorThreads)
		if err != nil {
			c.close()
			return nil, 0, err
		}
		c.threads = append(c.threads, t)
		c.done.Go(t.run)
	}
	for {
		s := c.sum()
		if s.Failed > 0 {
			err := errors.Join(c.errors()...)
			c.close()
			return nil, 0, fmt.Errorf("%d of %d subscribers could not connect: %w", s.Failed, opts.size, err)
		}
		if s.Ready == int64(opts.size) {
			c.open.Store(true)
			return c, time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			c.close()
			return nil, 0, fmt.Errorf("only %d of %d subscribers are connected: %w", s.Ready, opts.size, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *fleet) errors() (all []error) {
	for _, t := range c.threads {
		if err := t.err.Load(); err != nil {
			all = append(all, *err)
		}
	}
	return all
}

func (c *fleet) sum() tally {
	var s tally
	for _, t := range c.threads {
		s.add(t.seen.Load())
	}
	return s
}

// close resets every connection, so that none of them lingers in the kernel and takes a port.
func (c *fleet) close() {
	c.stop.Store(true)
	c.done.Wait()
	for _, t := range c.threads {
		t.closeAll()
	}
}

// latencies of a window are valid after close.
func (c *fleet) latencies(window int32) *histogram.Fine {
	h := new(histogram.Fine)
	for _, t := range c.threads {
		h.Merge(&t.latency[window-1])
	}
	return h
}

// witnesses is valid after close.
func (c *fleet) witnesses() (all []*witness) {
	for _, t := range c.threads {
		for i := range t.subscribers {
			if w := t.subscribers[i].witness; w != nil {
				w.finish()
				all = append(all, w)
			}
		}
	}
	return all
}

// thread is an event loop of the generator.
type thread struct {
	fleet  *fleet
	number int
	epoll  int
	seen   atomic.Pointer[tally]
	err    atomic.Pointer[error]

	// Owned by run, and after it by whoever waited for its end.
	subscribers []subscriber
	opened      int
	opening     int
	local       tally
	latency     [2]histogram.Fine // by window
	buf         [256 << 10]byte
}

// subscriber is one connection.
type subscriber struct {
	fd      int32
	state   uint8
	segment segments
	last    [maxPublishers]uint32
	scan    scanner
	body    body
	witness *witness
}

const (
	connecting = iota
	waiting    // for the header
	streaming
	gone
)

func newThread(c *fleet, number, size int) (*thread, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	t := &thread{fleet: c, number: number, epoll: epoll, subscribers: make([]subscriber, size)}
	t.seen.Store(&tally{})
	for i := range min(size, (c.opts.witnesses+generatorThreads-1-number)/generatorThreads) {
		t.subscribers[i].witness = &witness{}
	}
	return t, nil
}

func (t *thread) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	events := make([]syscall.EpollEvent, 512)
	for !t.fleet.stop.Load() {
		t.openMore()
		n, err := syscall.EpollWait(t.epoll, events, 20)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			t.fail(err)
			return
		}
		now := clock()
		for i := range max(n, 0) {
			t.handle(&t.subscribers[events[i].Fd], events[i].Events, now)
		}
		if n > 0 {
			seen := t.local
			t.seen.Store(&seen)
		}
	}
}

func (t *thread) fail(err error) {
	t.err.CompareAndSwap(nil, &err)
	t.local.Failed++
	seen := t.local
	t.seen.Store(&seen)
}

// openMore keeps a bounded number of connections on their way.
func (t *thread) openMore() {
	for t.opened < len(t.subscribers) && t.opening < max(1, t.fleet.opts.parallel/generatorThreads) {
		t.connect(t.opened)
		t.opened++
	}
}

func (t *thread) connect(i int) {
	s := &t.subscribers[i]
	fd, err := dial(t.fleet.opts.address, i)
	if err != nil {
		s.state = gone
		t.fail(err)
		return
	}
	s.fd, s.state = int32(fd), connecting
	t.opening++
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT, Fd: int32(i)}
	if err := syscall.EpollCtl(t.epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		t.fail(err)
	}
}

// again makes a connection anew that did not work out: some servers refuse a few when many come at once.
func (t *thread) again(s *subscriber, why error) {
	if s.state == streaming {
		t.local.Ready--
	} else {
		t.opening--
	}
	t.drop(s)
	if t.local.Retried++; t.local.Retried > int64(len(t.subscribers)) {
		t.fail(fmt.Errorf("tried too often: %w", why))
		return
	}
	*s = subscriber{witness: s.witness}
	if s.witness != nil {
		*s.witness = witness{}
	}
	t.connect(t.index(s))
}

const (
	perAddress          = 10_000 // connections of one thread from one source address
	ipBindAddressNoPort = 24     // lets the kernel choose the port when it knows the peer
)

// dial begins a connection from one of several addresses of this machine: each has only so many ports.
func dial(to netip.AddrPort, number int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
	from := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 1, byte(1 + number/perAddress)}}
	if err = syscall.Bind(fd, from); err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	}
	if err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		syscall.Close(fd)
		return -1, fmt.Errorf("connect: %w", err)
	}
	return fd, nil
}

func (t *thread) handle(s *subscriber, events uint32, now int64) {
	if s.state == connecting && events&syscall.EPOLLOUT != 0 {
		t.ask(s)
	}
	if events&(syscall.EPOLLIN|syscall.EPOLLHUP|syscall.EPOLLERR) != 0 && s.state != gone {
		t.read(s, now)
	}
}

func (t *thread) ask(s *subscriber) {
	index, requests := t.index(s), t.fleet.opts.requests
	if _, err := syscall.Write(int(s.fd), requests[index%len(requests)]); err != nil {
		t.fail(fmt.Errorf("request: %w", err))
		t.drop(s)
		return
	}
	s.state = waiting
	_ = syscall.EpollCtl(t.epoll, syscall.EPOLL_CTL_MOD, int(s.fd), &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(index)})
}
