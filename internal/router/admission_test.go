package router_test

import (
	"context"
	"testing"

	gridmemory "github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// slowQuota is asked, and has to be counted first.
type slowQuota struct{ asked, counted chan struct{} }

func (q slowQuota) wait() {
	q.asked <- struct{}{}
	<-q.counted
}

func (q slowQuota) Reserve(context.Context, int, int) (func(error), error) {
	q.wait()
	return func(error) {}, nil
}

// TestLongDocumentsDoNotWaitForWhoDoesNotCompare: whoever waits for the grid, for a quota or for another publication to the topic keeps no
// processor busy, and must not keep the documents of others out.
func TestLongDocumentsDoNotWaitForWhoDoesNotCompare(t *testing.T) {
	t.Parallel()
	for name, isStored := range map[string]bool{"while the grid stores one": true, "while a quota is counted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := gridmemory.New(gridmemory.Options{})
			defer engine.Close()
			work := memory.NewSemaphore(memory.Limits{Bytes: 1 << 20, Holders: 1}) // who does not fit is refused at once
			g := &gridWith{Grid: engine}
			r := router.New(g, router.Options{Work: work})
			defer r.Close()
			quota := slowQuota{make(chan struct{}, 2), make(chan struct{})}
			var p router.Publication
			if isStored {
				g.before = func(put int64) error {
					if put == 1 {
						quota.wait()
					}
					return nil
				}
			} else {
				p.Quota = quota
			}
			topic, other := newTopic(t, "snapshot"), newTopic(t, "snapshot")
			done := make(chan error)
			publish := func(bytes int) {
				p := p
				p.Body = []byte(zeros(bytes))
				_, err := r.Publish(t.Context(), &topic, p)
				done <- err
			}
			go publish(100 << 10)
			<-quota.asked
			go publish(101 << 10) // waits for the first
			if _, err := r.Publish(t.Context(), &other, router.Publication{Body: []byte(zeros(100 << 10))}); err != nil {
				t.Errorf("a document of somebody else: %v", err)
			}
			close(quota.counted)
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if bytes, waiting := work.Held(); bytes != 0 || waiting != 0 {
				t.Errorf("%d bytes are held in the end, and %d wait", bytes, waiting)
			}
		})
	}
}

// ledger is a quota that counts reservations without an end.
type ledger struct{ open, settled int }

func (l *ledger) Reserve(context.Context, int, int) (func(error), error) {
	l.open++
	return func(error) { l.open--; l.settled++ }, nil
}

// TestAPublicationThatPanicsGivesItsRoomBack: who counts an owner's documents waits for all that is under way, and everybody else for that.
func TestAPublicationThatPanicsGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	engine := gridmemory.New(gridmemory.Options{})
	defer engine.Close()
	r := router.New(&gridWith{Grid: engine, before: func(int64) error { panic("in the grid") }}, router.Options{})
	defer r.Close()
	topic, quota := newTopic(t, "snapshot"), new(ledger)
	func() {
		defer func() { _ = recover() }() // as the HTTP library does
		_, _ = r.Publish(t.Context(), &topic, router.Publication{Body: []byte(`1`), Quota: quota})
	}()
	if *quota != (ledger{settled: 1}) {
		t.Errorf("%+v", *quota)
	}
}
