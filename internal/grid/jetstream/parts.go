package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// parts are what does not fit into one message, and what many messages in a row would repeat: messages of their own
// that the topic's message refers to. They are written before it and dropped after the next base. A reader who comes too late
// for them finds a newer message of the topic.
type parts struct {
	link    *link
	streams *streams
	life    *lifetime
}

// maxParts is how many there may be: as many as one request can return.
const maxParts = 1024

// errParts says that parts are gone.
var errParts = errors.New("grid: parts of a document are missing")

var errLostPart = errors.New("a part of the document was not stored in time")

// upload stores bytes in parts.
func (p *parts) upload(ctx context.Context, topic string, all []byte) (blob, error) {
	size := p.link.maxPayload - 4<<10
	b := blob{ref: newMark(), length: len(all), parts: (len(all) + size - 1) / size}
	if b.parts > maxParts {
		return b, freshet.Errorf(freshet.TooLarge, "The document is too large for the cluster: %d bytes", len(all))
	}
	for i := range b.parts {
		part := all[i*size : min((i+1)*size, len(all))]
		w := &write{subject: p.subject(topic, b.ref, strconv.Itoa(i)), expected: anySequence, body: part}
		if p.life.ttl > 0 {
			w.ttl = 2*p.life.ttl + 2*ttlSlack
		}
		_, err := p.streams.of(topic).store(ctx, w)
		if errors.Is(err, grid.ErrUnknown) {
			err = unknown(errLostPart) // nothing refers to it, so nothing changed
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

func (p *parts) subject(topic string, ref mark, rest string) string {
	return p.link.subject("part", shardToken(shardOf(topic)), token(topic), fmt.Sprintf("%016x", uint64(ref)), rest)
}

// download is the reverse of upload. Replicas that lag behind are given up for the leader.
func (p *parts) download(ctx context.Context, topic string, b *blob) ([]byte, error) {
	stream := p.streams.of(topic)
	parts := make([][]byte, b.parts)
	_, err := stream.batch(ctx, batch{LastOf: []string{p.subject(topic, b.ref, "*")}}, func(m message) {
		i, err := strconv.Atoi(lastToken(m.subject))
		if err == nil && i >= 0 && i < len(parts) {
			parts[i] = m.data
		}
	})
	if err != nil {
		p.link.log.Debug("parts come from the leader", "topic", topic, "err", err)
	}
	all := make([]byte, 0, b.length)
	for i, part := range parts {
		if part == nil {
			msg, err := stream.last(ctx, p.subject(topic, b.ref, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			part = msg.data
		}
		all = append(all, part...)
	}
	if len(all) != b.length {
		return nil, errParts
	}
	return all, nil
}

// drop drops the parts that were written before those of a record. What fails here is dropped by the next one, or
// expires.
func (p *parts) drop(topic string, rec *record, seq uint64) {
	stream := p.streams.of(topic)
	filter := p.link.subject("part", shardToken(shardOf(topic)), token(topic), ">")
	first := p.subject(topic, rec.base.ref, "0")
	p.link.tasks.spawn(func() {
		ctx, cancel := context.WithTimeout(p.link.tasks.ctx, readTimeout)
		defer cancel()
		if rec.base.parts > 0 {
			msg, err := stream.last(ctx, first)
			if err != nil || msg.seq == 0 {
				return
			}
			seq = msg.seq
		}
		if err := stream.purge(ctx, filter, seq); err != nil {
			p.link.log.Debug("old parts stay for now", "topic", topic, "err", err)
		}
	})
}
