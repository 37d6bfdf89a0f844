// Package trace follows publications through the program and tells an OpenTelemetry collector what took how long, over OTLP/HTTP
// with JSON. It is off unless an endpoint is set.
//
// It deliberately is not a tracing library: there are spans with a few attributes, parents from `traceparent` headers, and one
// exporter with a bounded queue. What is not followed is a nil *Span, on which every method does nothing, so that tracing costs
// a comparison where it is off. Spans never carry keys, tokens, documents or the URLs of data sources.
//
// A Tracer is safe for concurrent use. A Span belongs to whoever started it; a Delivery may be told from any goroutine.
package trace

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// Parent is where a trace comes from: the span that asked, of this process or of another.
type Parent struct {
	trace   [16]byte
	span    [8]byte
	sampled bool
}

// IsZero reports whether there is no parent.
func (p Parent) IsZero() bool { return p.trace == [16]byte{} }

// ParseParent reads a traceparent header. What cannot be read is no parent, as the W3C recommendation wants it.
func ParseParent(header string) Parent {
	var p Parent
	parts := strings.Split(strings.TrimSpace(header), "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 {
		return Parent{}
	}
	var version, flags [1]byte
	for _, f := range []struct {
		text string
		into []byte
	}{{parts[0], version[:]}, {parts[1], p.trace[:]}, {parts[2], p.span[:]}, {parts[3], flags[:]}} {
		if len(f.text) != 2*len(f.into) || strings.ToLower(f.text) != f.text {
			return Parent{}
		}
		if _, err := hex.Decode(f.into, []byte(f.text)); err != nil {
			return Parent{}
		}
	}
	if p.trace == [16]byte{} || p.span == [8]byte{} {
		return Parent{}
	}
	p.sampled = flags[0]&1 != 0
	return p
}

// String is the traceparent header.
func (p Parent) String() string {
	if p.IsZero() {
		return ""
	}
	flags := "00"
	if p.sampled {
		flags = "01"
	}
	return "00-" + hex.EncodeToString(p.trace[:]) + "-" + hex.EncodeToString(p.span[:]) + "-" + flags
}

// Kind is how a span stands to others, by OTLP's numbers.
type Kind int

// The kinds of spans.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
	Consumer Kind = 5
)

// Span is something that took time.
type Span struct {
	tracer     *Tracer
	id         Parent // of this span
	parent     [8]byte
	name       string
	kind       Kind
	start, end time.Time
	attributes []attribute
	failure    string
	failed     bool
}

// attribute has a value that is a string or an int64.
type attribute struct {
	key   string
	value any
}

// Start begins a span, below parent if there is one: its sampling is the parent's then, and otherwise a matter of chance. It
// returns nil for what is not followed. Nobody follows on a nil Tracer.
func (t *Tracer) Start(name string, kind Kind, parent Parent) *Span {
	if t == nil {
		return nil
	}
	if parent.IsZero() && (t.ratio <= 0 || t.ratio < 1 && rand.Float64() >= t.ratio) || !parent.IsZero() && !parent.sampled {
		return nil
	}
	s := &Span{tracer: t, name: name, kind: kind, parent: parent.span, start: time.Now()}
	s.id = Parent{trace: parent.trace, span: newSpanID(), sampled: true}
	if parent.IsZero() {
		s.id.trace = newTraceID()
	}
	return s
}

// Child begins a span below this one.
func (s *Span) Child(name string, kind Kind) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.Start(name, kind, s.id)
}

// Parent is what spans below this one, also on other nodes, have as their parent.
func (s *Span) Parent() Parent {
	if s == nil {
		return Parent{}
	}
	return s.id
}

// Set adds a text to a span.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.attributes = append(s.attributes, attribute{key, value})
	}
}

// SetInt adds a number to a span.
func (s *Span) SetInt(key string, value int64) {
	if s != nil {
		s.attributes = append(s.attributes, attribute{key, value})
	}
}

// Fail marks a span as failed. The text must be one that may be shown.
func (s *Span) Fail(text string) {
	if s != nil {
		s.failed, s.failure = true, text
	}
}

// End ends a span and has it told. Nobody may touch the span afterwards.
func (s *Span) End() {
	if s != nil {
		s.endAt(time.Now())
	}
}

func (s *Span) endAt(at time.Time) {
	s.end = at
	s.tracer.queue(s)
}

type spanKey struct{}

// With returns a context that carries the span. Without a span it is ctx itself.
func With(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// From returns the span that a context carries, or nil.
func From(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

func newTraceID() (id [16]byte) {
	for id == [16]byte{} {
		fill(id[:])
	}
	return id
}

func newSpanID() (id [8]byte) {
	for id == [8]byte{} {
		fill(id[:])
	}
	return id
}

// fill makes identifiers: unique, not secret.
func fill(b []byte) {
	for i := 0; i < len(b); i += 8 {
		for j, n := 0, rand.Uint64(); j < 8; j++ { //nolint:gosec // see above
			b[i+j] = byte(n >> (8 * j))
		}
	}
}

// Delivery is the span of one revision on its way to subscribers. Nobody knows beforehand who will write it when, so it ends with
// the last write that came before some time without any.
type Delivery struct {
	span *Span

	// Guarded by mu.
	mu            sync.Mutex
	last          time.Time
	events, bytes int64
	over          bool
}

// quiet is how long nobody wrote when a delivery is over.
const quiet = 2 * time.Second

// Deliver begins to follow a revision below parent. It returns nil for what is not followed.
func (t *Tracer) Deliver(parent Parent) *Delivery {
	if t == nil || !parent.sampled {
		return nil
	}
	d := &Delivery{span: t.Start("deliver", Consumer, parent)}
	d.last = d.span.start
	t.follow(d)
	return d
}

// Span is the delivery's span, to add to it before anybody writes.
func (d *Delivery) Span() *Span { return d.span }

// Wrote counts events that have just been handed to sockets. It does not block.
func (d *Delivery) Wrote(events, bytes int64) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		d.last, d.events, d.bytes = now, d.events+events, d.bytes+bytes
	}
}

// settle ends the delivery if nobody wrote for a while, or in any case.
func (d *Delivery) settle(now time.Time, force bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !force && now.Sub(d.last) < quiet {
		return false
	}
	d.over = true
	d.span.SetInt("freshet.events", d.events)
	d.span.SetInt("freshet.bytes", d.bytes)
	d.span.endAt(d.last)
	return true
}
