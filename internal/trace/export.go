package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the settings of a Tracer.
type Options struct {
	Endpoint string      // of the collector, such as http://localhost:4318; its path for traces is added
	Header   http.Header // for the collector, such as who we are
	Ratio    float64     // of the traces that begin here; those that a traceparent brings are decided elsewhere
	Version  string      // of this program
	Node     string      // which of its processes this is
	Log      *slog.Logger
}

// Bounds of what waits to be told. A collector that is slow or away costs spans, never memory or time.
const (
	maxQueue      = 8192
	maxBatch      = 512
	maxDeliveries = 4096
	exportEvery   = time.Second
	exportTimeout = 10 * time.Second
)

// Tracer follows publications and tells a collector.
type Tracer struct {
	// Static after New.
	url      string
	header   http.Header
	ratio    float64
	log      *slog.Logger
	client   *http.Client
	resource resource
	version  string
	ctx      context.Context // ends when Close has waited long enough
	cancel   context.CancelFunc
	wake     chan struct{} // holds one
	done     chan struct{}
	finished chan struct{}

	// Guarded by mu.
	mu         sync.Mutex
	spans      []*Span
	deliveries []*Delivery

	sent, dropped atomic.Uint64
	failing       bool // owned by run: it was said that the collector does not take them
}

// New starts a Tracer. Close it after everything that is followed.
func New(opts Options) *Tracer {
	t := &Tracer{
		url: strings.TrimSuffix(opts.Endpoint, "/") + "/v1/traces", header: opts.Header, ratio: opts.Ratio, log: opts.Log, version: opts.Version,
		client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute}},
		wake:   make(chan struct{}, 1), done: make(chan struct{}), finished: make(chan struct{}),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.resource = resource{Attributes: encodeAttributes([]attribute{
		{"service.name", "freshet"}, {"service.version", opts.Version}, {"service.instance.id", opts.Node},
	})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.run()
	return t
}

// Close tells what is left, as long as ctx lets it.
func (t *Tracer) Close(ctx context.Context) error {
	close(t.done)
	select {
	case <-t.finished:
	case <-ctx.Done():
		t.cancel()
		<-t.finished
	}
	t.cancel()
	t.client.CloseIdleConnections()
	return nil
}

// Stats is how many spans were told, and how many were not because the collector did not take them.
func (t *Tracer) Stats() (sent, dropped uint64) {
	if t == nil {
		return 0, 0
	}
	return t.sent.Load(), t.dropped.Load()
}

// queue takes an ended span. It does not block.
func (t *Tracer) queue(s *Span) {
	t.mu.Lock()
	full := len(t.spans) >= maxQueue
	if !full {
		t.spans = append(t.spans, s)
	}
	many := len(t.spans) >= maxBatch
	t.mu.Unlock()
	if full {
		t.dropped.Add(1)
	}
	if many {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// follow keeps an eye on a delivery until it is over. The oldest is given up when there are too many.
func (t *Tracer) follow(d *Delivery) {
	t.mu.Lock()
	t.deliveries = append(t.deliveries, d)
	var old *Delivery
	if len(t.deliveries) > maxDeliveries {
		old = t.deliveries[0]
		t.deliveries = t.deliveries[1:]
	}
	t.mu.Unlock()
	if old != nil {
		old.settle(time.Now(), true)
	}
}

func (t *Tracer) run() {
	defer close(t.finished)
	tick := time.NewTicker(exportEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.done:
			t.settle(time.Now(), true)
			t.export()
			return
		case now := <-tick.C:
			t.settle(now, false)
		case <-t.wake:
		}
		t.export()
	}
}

// settle ends deliveries that are over.
func (t *Tracer) settle(now time.Time, force bool) {
	t.mu.Lock()
	all := t.deliveries
	t.deliveries = nil
	t.mu.Unlock()
	var open []*Delivery
	for _, d := range all {
		if !d.settle(now, force) {
			open = append(open, d)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deliveries = append(open, t.deliveries...)
}

// export tells what is queued. What a collector does not take is dropped: it has had its time.
func (t *Tracer) export() {
	for {
		t.mu.Lock()
		batch := t.spans[:min(len(t.spans), maxBatch)]
		t.spans = t.spans[len(batch):]
		t.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		err := t.post(batch)
		if err == nil {
			t.sent.Add(uint64(len(batch)))
			t.failing = false
			continue
		}
		t.dropped.Add(uint64(len(batch)))
		if !t.failing { // once an outage, not once a second
			t.failing = true
			t.log.Warn("traces are lost: the collector does not take them", "err", err)
		}
	}
}

func (t *Tracer) post(batch []*Span) error {
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	if err := json.NewEncoder(zip).Encode(t.encode(batch)); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.ctx, exportTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, &body)
	if err != nil {
		return err
	}
	for name, values := range t.header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "freshet/"+t.version)
	resp, err := t.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %d", resp.StatusCode)
	}
	return nil
}

// The JSON of OTLP: identifiers are hexadecimal, 64-bit numbers are text.
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope      `json:"scope"`
		Spans []spanJSON `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	spanJSON struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		Name         string     `json:"name"`
		Kind         Kind       `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Status       *status    `json:"status,omitempty"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		Text   *string `json:"stringValue,omitempty"`
		Number string  `json:"intValue,omitempty"`
	}
)

const statusError = 2

func (t *Tracer) encode(batch []*Span) tracesData {
	spans := make([]spanJSON, len(batch))
	for i, s := range batch {
		spans[i] = spanJSON{
			TraceID: hex.EncodeToString(s.id.trace[:]), SpanID: hex.EncodeToString(s.id.span[:]), Name: s.name, Kind: s.kind,
			Start: strconv.FormatInt(s.start.UnixNano(), 10), End: strconv.FormatInt(s.end.UnixNano(), 10),
			Attributes: encodeAttributes(s.attributes),
		}
		if s.parent != [8]byte{} {
			spans[i].ParentSpanID = hex.EncodeToString(s.parent[:])
		}
		if s.failed {
			spans[i].Status = &status{Code: statusError, Message: s.failure}
		}
	}
	return tracesData{[]resourceSpans{{t.resource, []scopeSpans{{scope{"github.com/freshet-io/freshet", t.version}, spans}}}}}
}

func encodeAttributes(all []attribute) []keyValue {
	var out []keyValue
	for _, a := range all {
		kv := keyValue{Key: a.key}
		switch v := a.value.(type) {
		case string:
			kv.Value.Text = &v
		case int64:
			kv.Value.Number = strconv.FormatInt(v, 10)
		}
		out = append(out, kv)
	}
	return out
}
