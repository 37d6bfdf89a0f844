package subscribe_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/subscribe"
)

// expectEnd expects an error event soon after began.
func expectEnd(s *stream, began time.Time, soon time.Duration) {
	s.t.Helper()
	if e := s.expect("error", ""); !strings.Contains(e.data, "40111") {
		s.t.Error(e)
	}
	if took := time.Since(began); took > soon {
		s.t.Errorf("it took %v", took)
	}
}

// silentSources answer no more, once they are told so.
type silentSources struct {
	subscribe.Sources
	silent atomic.Bool
}

func (s *silentSources) Value(ctx context.Context, name string) (string, error) {
	if s.silent.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return s.Sources.Value(ctx, name)
}

// TestAGridThatIsSilentHoldsUpNobodysEnd: a node that is cut off from the others still ends streams whose key is renewed, however many
// topics are polled.
func TestAGridThatIsSilentHoldsUpNobodysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources := &silentSources{}
		change := func(p *subscribe.Parts) { sources.Sources, p.Sources = p.Sources, sources }
		h := newHarness(t, options{recheck: 200 * time.Millisecond, change: change}, newPipeListener(), -1)
		defer h.close()
		for range 20 {
			topic := h.topic("snapshot")
			topic.Publisher.Type = freshet.HTTPPoller
			h.catalog.mu.Lock()
			h.catalog.topics[topic.ID] = topic
			h.catalog.mu.Unlock()
			h.post(topic, `1`)
			s := h.get("/v1/topics/"+topic.ID, nil)
			defer s.close()
			s.expect("snapshot", "1")
		}
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		s := h.get("/v1/topics/"+topic.ID+"?X-Sd-Subscriber-Key=k", nil)
		defer s.close()
		s.expect("snapshot", "1")
		sources.silent.Store(true)
		time.Sleep(time.Second) // it is being waited for
		h.catalog.setRefusal("k", freshet.RevokedCredential)
		expectEnd(s, time.Now(), 6*time.Second)
	})
}

// slowRouter opens one topic only when it is told to.
type slowRouter struct {
	subscribe.Router
	slow string
	open chan struct{}
}

func (r *slowRouter) Subscribe(ctx context.Context, topic *freshet.Topic, v router.Variant) (*router.Feed, error) {
	if topic.ID == r.slow {
		<-r.open
	}
	return r.Router.Subscribe(ctx, topic, v)
}

// TestATopicThatOpensSlowlyHoldsUpNobodysEnd: its own subscriber's end has to wait, that of others has not.
func TestATopicThatOpensSlowlyHoldsUpNobodysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowRouter{open: make(chan struct{})}
		change := func(p *subscribe.Parts) { slow.Router, p.Router = p.Router, slow }
		h := newHarness(t, options{recheck: time.Hour, change: change}, newPipeListener(), -1)
		defer h.close()
		one, other := h.topic("snapshot"), h.topic("snapshot")
		h.post(one, `1`)
		h.post(other, `1`)
		slow.slow = one.ID
		s := h.get("/v1/topics/"+other.ID+"?X-Sd-Subscriber-Key=other", nil)
		defer s.close()
		s.expect("snapshot", "1")
		waiting := make(chan *stream)
		go func() { waiting <- h.get("/v1/topics/"+one.ID+"?X-Sd-Subscriber-Key=one", nil) }()
		synctest.Wait()
		renew := func(topic freshet.Topic, key string) {
			h.catalog.setRefusal(key, freshet.RevokedCredential)
			if err := h.grid.Notify(t.Context(), grid.Notice{Scope: grid.ScopeTopic, ID: topic.ID}); err != nil {
				t.Error(err)
			}
		}
		renew(one, "one")
		time.Sleep(time.Second) // that is being seen to
		renew(other, "other")
		expectEnd(s, time.Now(), time.Second)
		close(slow.open)
		began := time.Now()
		late := <-waiting
		defer late.close()
		late.expect("snapshot", "1")
		expectEnd(late, began, time.Second)
	})
}

// slowCatalog takes its time to refuse.
type slowCatalog struct{ subscribe.Catalog }

func (c slowCatalog) MaySubscribe(ctx context.Context, ask catalog.SubscribeAsk) (*catalog.Grant, error) {
	g, err := c.Catalog.MaySubscribe(ctx, ask)
	if err != nil {
		time.Sleep(time.Second)
	}
	return g, err
}

// TestWhoIsBeingRefusedTakesUpNoPlace: else strangers without a key could keep everybody else out.
func TestWhoIsBeingRefusedTakesUpNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		change := func(p *subscribe.Parts) { p.Catalog = slowCatalog{p.Catalog} }
		h := newHarness(t, options{max: 3, seatWait: 100 * time.Millisecond, change: change}, newPipeListener(), -1)
		defer h.close()
		topic := h.topic("snapshot")
		h.post(topic, `1`)
		h.catalog.setRefusal("wrong", freshet.UnknownCredential)
		strangers := make(chan *stream)
		for range 10 {
			go func() { strangers <- h.get("/v1/topics/"+topic.ID+"?X-Sd-Subscriber-Key=wrong", nil) }()
		}
		synctest.Wait()
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		s.expect("snapshot", "1")
		for range 10 {
			refused := <-strangers
			refused.expect("error", "")
			refused.close()
		}
	})
}
