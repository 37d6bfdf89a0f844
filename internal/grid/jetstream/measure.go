package jetstream

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// measureAnew is how long lengths are only brought up to date before all of them are read again. It is shorter than deletions are
// remembered, and heals what became of a stream that was emptied by hand.
const measureAnew = tombstoneTTL / 2

// lengths is what is known of the lengths of documents.
type lengths struct {
	began time.Time // when everything was read
	all   map[string]measured
}

// measured is the length of a topic's document.
type measured struct {
	bytes   int64
	expires time.Time // zero: never
	upTo    uint64    // the sequence of its stream up to which that is so
}

// Measure implements grid.Documents. It reads from whichever server answers, which may be a moment behind the leader.
func (d *documents) Measure(ctx context.Context, topics []string, last *grid.Lengths) (sum int64, err error) {
	known, _ := last.Known.(*lengths)
	if known == nil || time.Since(known.began) > measureAnew {
		known = &lengths{began: time.Now()}
	}
	last.Known = nil // unless everything can be read
	before := known.all
	known.all = make(map[string]measured, len(topics)) // without those that are gone
	byStream := make(map[*stream][]string)
	for _, topic := range topics {
		known.all[topic] = before[topic]
		stream := d.streams.of(topic)
		byStream[stream] = append(byStream[stream], topic)
	}
	for stream, topics := range byStream {
		if err := d.measureStream(ctx, stream, topics, known); err != nil {
			return 0, unknown(err)
		}
	}
	now := d.Now()
	for _, m := range known.all {
		if m.expires.IsZero() || now.Before(m.expires) {
			sum += m.bytes
		}
	}
	last.Known = known
	return sum, nil
}

// measureStream reads what changed in topics of one stream.
func (d *documents) measureStream(ctx context.Context, stream *stream, topics []string, known *lengths) error {
	// As in a sweep, a request has one sequence for all its topics; neighbours have about the same.
	slices.SortFunc(topics, func(a, b string) int { return cmp.Compare(known.all[a].upTo, known.all[b].upTo) })
	for slice := range slices.Chunk(topics, sweepSlice) {
		subjects := make([]string, len(slice))
		bySubject := make(map[string]string, len(slice))
		for i, topic := range slice {
			subjects[i] = d.link.docSubject(topic)
			bySubject[subjects[i]] = topic
		}
		since := known.all[slice[0]].upTo
		upTo, err := stream.batch(ctx, batch{LastOf: subjects, Seq: since + 1}, func(msg message) {
			topic, ok := bySubject[msg.subject]
			if ok && msg.seq > known.all[topic].upTo { // a server that is behind may bring what was replaced
				known.all[topic] = d.measure(&msg)
			}
		})
		if err != nil {
			return err
		}
		for _, topic := range slice {
			m := known.all[topic]
			m.upTo = max(m.upTo, upTo)
			known.all[topic] = m
		}
	}
	return nil
}

// measure says how long the document in a message is.
func (d *documents) measure(msg *message) measured {
	m := measured{bytes: int64(lengthIn(msg.headers())), upTo: msg.seq}
	tombstone, at, err := peekRecord(msg.data)
	if err != nil || tombstone {
		return measured{upTo: msg.seq}
	}
	if m.bytes == 0 {
		m.bytes = storedLength(msg.data)
	}
	if d.life.ttl > 0 {
		m.expires = at.Add(d.life.ttl)
	}
	return m
}

// peekRecord reads whether a message says that there is no document, and when it was published, without unpacking it.
func peekRecord(body []byte) (tombstone bool, at time.Time, err error) {
	if len(body) == 0 { // removed by hand
		return true, at, nil
	}
	_, payload, err := unseal(body)
	if err != nil || len(payload) == 0 {
		return true, at, err
	}
	in := reader{rest: payload}
	in.bytes()
	in.uvarint()
	in.uvarint()
	at = time.UnixMilli(in.varint())
	return false, at, in.err
}

// storedLength is about how long a document is whose message does not say: one that an earlier version stored. A snapshot in one
// message is as long as it says.
func storedLength(body []byte) int64 {
	rec, err := decodeRecord(body)
	if err != nil {
		return 0
	}
	total := len(rec.base.inline) + rec.base.length
	for i := range rec.segments {
		total += rec.segments[i].length
	}
	for _, d := range rec.deltas {
		total += len(d)
	}
	return int64(total)
}
