package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/histogram"
)

const (
	connectFor = 30 * time.Second // how long all subscribers may take to connect
	arriveFor  = 30 * time.Second // how long the last document may take
	drawEvery  = 200 * time.Millisecond
)

// benchRun is one run of freshet bench.
type benchRun struct {
	benchOptions
	p                               *process
	client                          *client.Client
	topic                           string
	key, publisherKey, signatureKey string

	connected, delivered, reconnects, failed atomic.Int64
	published                                atomic.Int64
}

// benchReader is one subscriber.
type benchReader struct {
	latency histogram.Fine
	last    atomic.Int64 // number of the newest document
	events  int64
	err     error
}

func (b *benchRun) run(ctx context.Context) (*benchReport, error) {
	ctx, stop := context.WithCancel(ctx)
	readers := make([]*benchReader, b.subscribers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var publish histogram.Fine
	if err := b.publish(ctx, 0, &publish); err != nil {
		return nil, err
	}
	for i := range readers {
		readers[i] = &benchReader{}
		wg.Go(func() { b.read(ctx, readers[i], i == 0) })
	}
	if err := b.connect(ctx, readers); err != nil {
		return nil, err
	}
	publish = histogram.Fine{}
	b.published.Store(0)
	b.delivered.Store(0)
	began := time.Now()
	last, err := b.load(ctx, &publish, began)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	complete := b.arrive(ctx, readers, last)
	stop()
	wg.Wait()
	b.clear()
	return b.report(readers, &publish, took, complete), nil
}

// read follows the topic and measures from the time that each document carries. One that fails fast is enough to find a wrong address; a
// busy server may refuse some of the others for a moment.
func (b *benchRun) read(ctx context.Context, r *benchReader, failFast bool) {
	first := true
	o := client.SubscribeOptions{Key: b.key, SignatureKey: b.signatureKey, Compress: b.compress, FailFast: failFast, OnState: func(s client.State) {
		if s.Phase == client.Waiting {
			b.reconnects.Add(1)
		}
	}}
	for e, err := range b.client.Subscribe(ctx, b.topic, o) {
		if err != nil {
			if ctx.Err() == nil {
				r.err = err
				b.failed.Add(1)
			}
			return
		}
		if e.Kind == client.Failure && first { // such as too many connections: it would come back, but the run shall not wait
			r.err = e.Err
			b.failed.Add(1)
			return
		}
		sent, number, ok := readStamp(e.Document)
		if e.Kind == client.Failure || !ok {
			continue
		}
		if first {
			first = false
			b.connected.Add(1)
		} else {
			r.latency.Add(time.Since(sent))
			r.events++
			b.delivered.Add(1)
		}
		r.last.Store(number)
	}
}

// document carries its number and when it was sent, and enough else to be as large as asked for.
func (b *benchRun) document(number int64, now time.Time) []byte {
	doc := fmt.Appendf(nil, `{"sent":%d,"number":%d,"padding":"`, now.UnixNano(), number)
	return append(append(doc, strings.Repeat("x", max(0, b.size-len(doc)-2))...), `"}`...)
}

func readStamp(document []byte) (sent time.Time, number int64, ok bool) {
	rest, ok1 := bytes.CutPrefix(document, []byte(`{"sent":`))
	nanos, rest, ok2 := bytes.Cut(rest, []byte(`,"number":`))
	digits, _, ok3 := bytes.Cut(rest, []byte(","))
	at, err1 := strconv.ParseInt(string(nanos), 10, 64)
	number, err2 := strconv.ParseInt(string(digits), 10, 64)
	return time.Unix(0, at), number, ok1 && ok2 && ok3 && err1 == nil && err2 == nil
}

func (b *benchRun) publish(ctx context.Context, number int64, h *histogram.Fine) error {
	began := time.Now()
	_, err := b.client.Publish(ctx, b.topic, b.document(number, began), client.PublishOptions{Key: b.publisherKey})
	if err == nil {
		h.Add(time.Since(began))
		b.published.Add(1)
	}
	return err
}

// connect waits until every subscriber holds the first document.
func (b *benchRun) connect(ctx context.Context, readers []*benchReader) error {
	deadline := time.Now().Add(connectFor)
	for b.connected.Load() < int64(b.subscribers) {
		if b.failed.Load() > 0 {
			for _, r := range readers {
				if r.err != nil {
					return r.err
				}
			}
		}
		if time.Now().After(deadline) {
			return freshet.Errorf(freshet.Timeout, "only %d of %d subscribers could connect within %v", b.connected.Load(), b.subscribers, connectFor)
		}
		b.draw("connecting", float64(b.connected.Load())/float64(b.subscribers), "")
		if err := pause(ctx, drawEvery/4); err != nil {
			return err
		}
	}
	return nil
}

// load publishes at a steady rate. A publication that is late does not make the next ones late: each has its time.
func (b *benchRun) load(ctx context.Context, h *histogram.Fine, began time.Time) (last int64, err error) {
	total := int64(float64(b.rate) * b.duration.Seconds())
	drawn := time.Now()
	failures := int64(0)
	for n := int64(1); n <= max(total, 1); n++ {
		due := began.Add(time.Duration(float64(n-1) / float64(b.rate) * float64(time.Second)))
		if err := pause(ctx, time.Until(due)); err != nil {
			return last, err
		}
		switch err := b.publish(ctx, n, h); {
		case err == nil:
			last = n
		case client.StatusOf(err) == 0 || client.StatusOf(err)/100 == 4:
			return last, err
		default:
			failures++
		}
		if now := time.Now(); now.Sub(drawn) > drawEvery {
			drawn = now
			share := now.Sub(began).Seconds() / b.duration.Seconds()
			b.draw("publishing", share, fmt.Sprintf("%.0f deliveries/s", float64(b.delivered.Load())/now.Sub(began).Seconds()))
		}
	}
	b.failed.Add(failures)
	return last, nil
}

// arrive waits until everybody holds the last document.
func (b *benchRun) arrive(ctx context.Context, readers []*benchReader, last int64) bool {
	for deadline := time.Now().Add(arriveFor); time.Now().Before(deadline); {
		missing := 0
		for _, r := range readers {
			if r.last.Load() != last {
				missing++
			}
		}
		if missing == 0 {
			return true
		}
		if pause(ctx, 10*time.Millisecond) != nil {
			return false
		}
	}
	return false
}

func (b *benchRun) report(readers []*benchReader, publish *histogram.Fine, took time.Duration, complete bool) *benchReport {
	r := &benchReport{
		Subscribers: b.subscribers, Rate: b.rate, DocumentBytes: len(b.document(1, time.Now())), Seconds: took.Seconds(),
		Published: b.published.Load(), PublishFailed: b.failed.Load(), Reconnects: b.reconnects.Load(), Complete: complete,
		PublishMs: percentiles(publish),
	}
	for _, reader := range readers {
		r.latency.Merge(&reader.latency)
		r.Delivered += reader.events
	}
	r.PerSecond = float64(r.Delivered) / took.Seconds()
	r.Merged = max(0, r.Published*int64(b.subscribers)-r.Delivered)
	r.LatencyMs = percentiles(&r.latency)
	return r
}

// draw shows progress to a person on the last line of the terminal.
func (b *benchRun) draw(what string, share float64, more string) {
	if !isTerminal(b.p.stderr) {
		return
	}
	const width = 30
	full := max(0, min(int(share*width), width))
	_, _ = fmt.Fprintf(b.p.stderr, "\r%-10s [%s%s] %3.0f %%  %s\x1b[K", what, strings.Repeat("#", full), strings.Repeat(" ", width-full), 100*min(share, 1), more)
}

func (b *benchRun) clear() {
	if isTerminal(b.p.stderr) {
		_, _ = fmt.Fprint(b.p.stderr, "\r\x1b[K")
	}
}
