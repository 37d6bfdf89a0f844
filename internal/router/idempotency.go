package router

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

// keyRecord is the record of one idempotency key in the grid, held by the one publication that may be made with it. Its value is a
// fingerprint of the body and what became of the publication: pending, unknown, or the position it led to.
type keyRecord struct {
	grid    grid.Values
	name    string
	body    string // a fingerprint, so that the key cannot be used for something else by mistake
	pending string

	isRepeated bool // somebody had it before, and did not say what became of the publication
	waited     time.Duration
}

const (
	keyWindow   = 24 * time.Hour
	pendingMark = "pending" // somebody is at it, or died with it
	unknownMark = "unknown" // nobody is at it any more

	keyPatience = 3 * time.Second // with a publication under way; then its node is taken for dead
	keyLook     = 100 * time.Millisecond
	maxOwners   = 3
)

// publishOnce publishes unless a publication with the same key was made before. What a node that died stored, and could not record, is
// found in the topic: the grid remembers the names of the last publications with each document.
func (r *Router) publishOnce(ctx context.Context, topic *freshet.Topic, p Publication) (Outcome, error) {
	record, earlier, err := r.acquireKey(ctx, topic.ID, &p)
	if err != nil {
		return Outcome{}, err
	}
	if earlier != nil {
		return *earlier, nil
	}
	p.once, p.isRepeated = record.name+"/"+record.body, record.isRepeated
	p.received = p.received.Add(min(record.waited, keyPatience)) // which is no sign of a cluster that does not answer
	out, err := r.publish(ctx, topic, p)
	if record.complete(ctx, out, err) {
		r.noteRecorded(topic.ID, p.once)
	}
	return out, err
}

// acquireKey returns the record of the publication's key, or the outcome of the earlier publication with it.
func (r *Router) acquireKey(ctx context.Context, topicID string, p *Publication) (*keyRecord, *Outcome, error) {
	k := &keyRecord{grid: r.grid, name: "publication/" + topicID + "/" + fingerprint([]byte(p.IdempotencyKey)), body: fingerprint(p.Body)}
	k.pending = k.body + " " + pendingMark + " " + freshet.NewID()
	value, err := r.grid.Swap(ctx, k.name, "", k.pending, keyWindow)
	for range maxOwners {
		if err != nil || value == k.pending {
			return k, nil, err
		}
		body, outcome, _ := strings.Cut(value, " ")
		if body != k.body {
			return nil, nil, freshet.Errorf(freshet.Conflict, "This Idempotency-Key was used for another publication")
		}
		k.isRepeated = true
		switch {
		case strings.HasPrefix(outcome, pendingMark):
			value, err = k.takeOver(ctx, value)
		case outcome == unknownMark:
			value, err = r.grid.Swap(ctx, k.name, value, k.pending, keyWindow)
		default:
			pos, _ := freshet.ParsePosition(outcome)
			return nil, &Outcome{Position: pos, Replayed: true}, nil
		}
	}
	e := freshet.Errorf(freshet.Conflict, "A publication with this Idempotency-Key is still under way")
	e.RetryAfter = time.Second
	return nil, nil, e
}

// takeOver waits for a publication under way and returns the record's value then. One that takes long may have died with its node,
// whether it was stored or not: its record is taken over. Should it live, the grid stores only one of the two.
func (k *keyRecord) takeOver(ctx context.Context, value string) (string, error) {
	began := time.Now()
	defer func() { k.waited += time.Since(began) }()
	for time.Since(began) < keyPatience {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(keyLook):
		}
		now, err := k.grid.Value(ctx, k.name)
		if err != nil {
			return "", err
		}
		if now == "" {
			value = now // it failed
			break
		}
		if now != value {
			return now, nil
		}
	}
	return k.grid.Swap(ctx, k.name, value, k.pending, keyWindow)
}

// complete records the outcome, or frees the key for another try, and reports whether the outcome is recorded. If it is not, whoever
// repeats the publication finds it in the topic; that is no reason to call a stored publication failed.
func (k *keyRecord) complete(ctx context.Context, out Outcome, failed error) bool {
	now, window := k.body+" "+out.Position.String(), keyWindow
	switch {
	case errors.Is(failed, grid.ErrUnknown), k.isRepeated && isOurs(failed): // which says nothing about the one before
		now = k.body + " " + unknownMark
	case failed != nil:
		now, window = "", 0
	}
	value, err := k.grid.Swap(context.WithoutCancel(ctx), k.name, k.pending, now, window)
	return failed == nil && err == nil && value == now
}

// isOurs reports whether a publication failed for no fault of its own.
func isOurs(err error) bool { return err != nil && judge(Outcome{}, err) == failed }

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// recordedKeys are the names of publications to a topic whose outcome is in the record of their key, and which the grid need not
// remember with the document any more. The next publication tells it so.
type recordedKeys struct {
	mu    sync.Mutex
	names []string // never changed in place
}

// maxRecorded is more than the grid remembers.
const maxRecorded = 64

func (k *recordedKeys) add(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	oldest := max(0, len(k.names)+1-maxRecorded)
	k.names = append(slices.Clone(k.names[oldest:]), name)
}

func (k *recordedKeys) list() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names
}

// drop forgets names that the grid was told.
func (k *recordedKeys) drop(told []string) {
	if len(told) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = slices.DeleteFunc(slices.Clone(k.names), func(name string) bool { return slices.Contains(told, name) })
}

func (r *Router) noteRecorded(topicID, once string) {
	r.mu.Lock()
	t := r.topics[topicID]
	r.mu.Unlock()
	if t != nil {
		t.recorded.add(once)
	}
}
