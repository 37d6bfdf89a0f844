package subscribe

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/usage"
)

// audience is everybody whom the catalog granted the same question. What the catalog says to it once again concerns all of them.
type audience struct {
	// Static after audiences.enter made it.
	key    askKey
	ask    catalog.SubscribeAsk
	appID  string
	userID string
	topic  freshet.Topic

	groups map[groupKey]*group // those that take new members; guarded by audiences.mu
}

// askKey is what makes two questions to the catalog the same.
type askKey struct{ topic, key, timestamp, signature string }

func keyOf(ask *catalog.SubscribeAsk) askKey {
	k := askKey{topic: ask.TopicID, key: ask.Key}
	if ask.Signed != nil {
		k.timestamp, k.signature = ask.Signed.Timestamp, ask.Signed.Value
	}
	return k
}

func (a *audience) matches(f freshet.ConnectionFilter) bool {
	return (f.UserID == "" || f.UserID == a.userID) && (f.AppID == "" || f.AppID == a.appID) && (f.TopicID == "" || f.TopicID == a.topic.ID)
}

// audiences know who follows what on this node.
//
// An audience is listed as long as it has a group that takes new members. A group that was detached keeps its members, but gets none any
// more: whoever comes then begins a new one, and is judged anew.
type audiences struct {
	meter *usage.Meter // nil: nobody counts

	// Guarded by mu.
	mu    sync.Mutex
	byAsk map[askKey]*audience
	index audienceIndex
}

func newAudiences(meter *usage.Meter) *audiences {
	return &audiences{meter: meter, byAsk: make(map[askKey]*audience), index: newAudienceIndex()}
}

// enter adds a member to its group, and says whether it is the first there, who has to open it.
func (as *audiences) enter(ask catalog.SubscribeAsk, key groupKey, grant *catalog.Grant) (g *group, first bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byAsk[keyOf(&ask)]
	if a == nil {
		a = newAudience(ask, grant)
		as.byAsk[a.key] = a
		as.index.add(a)
	}
	g = a.groups[key]
	if g == nil {
		first = true
		g = newGroup(key, a, as.counter(a))
		a.groups[key] = g
	}
	g.members++
	return g, first
}

func newAudience(ask catalog.SubscribeAsk, grant *catalog.Grant) *audience {
	ask.TopicID, ask.Key = strings.Clone(ask.TopicID), strings.Clone(ask.Key) // they are parts of one subscriber's request
	return &audience{
		key: keyOf(&ask), ask: ask, appID: grant.AppID, userID: grant.UserID, topic: grant.Topic, groups: make(map[groupKey]*group),
	}
}

func (as *audiences) counter(a *audience) *usage.Counter {
	if as.meter == nil {
		return nil
	}
	return as.meter.Counter(usage.Place{TopicID: a.topic.ID, AppID: a.appID, UserID: a.userID})
}

// enterReady adds a member to a group that is there and open, if admit agrees. It returns nil if nobody was added.
func (as *audiences) enterReady(ask *catalog.SubscribeAsk, key groupKey, admit func(*audience) bool) *group {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byAsk[keyOf(ask)]
	if a == nil {
		return nil
	}
	g := a.groups[key]
	if g == nil || !g.isReady() || !admit(a) {
		return nil
	}
	g.members++
	return g
}

// leave takes a member out, and says whether it was the last one. Then the group gets none any more.
func (as *audiences) leave(g *group) (last bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if g.members--; g.members > 0 {
		return false
	}
	as.remove(g)
	return true
}

// detach keeps new members out of groups.
func (as *audiences) detach(groups ...*group) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, g := range groups {
		as.remove(g)
	}
}

// remove takes a group off the lists. The caller holds mu.
func (as *audiences) remove(g *group) {
	a := g.audience
	if a.groups[g.key] == g {
		delete(a.groups, g.key)
	}
	if len(a.groups) == 0 && as.byAsk[a.key] == a {
		delete(as.byAsk, a.key)
		as.index.remove(a)
	}
}

// all returns the audiences.
func (as *audiences) all() []*audience {
	as.mu.Lock()
	defer as.mu.Unlock()
	return slices.Collect(maps.Values(as.byAsk))
}

// about returns the audiences that any of the notices is about, each once.
func (as *audiences) about(notices iter.Seq[grid.Notice]) []*audience {
	as.mu.Lock()
	defer as.mu.Unlock()
	found := make(map[*audience]struct{})
	for n := range notices {
		as.index.collect(n, found)
	}
	return slices.Collect(maps.Keys(found))
}

// groupsOf returns the groups of an audience that take new members.
func (as *audiences) groupsOf(a *audience) []*group {
	as.mu.Lock()
	defer as.mu.Unlock()
	groups := make([]*group, 0, len(a.groups))
	for _, g := range a.groups {
		groups = append(groups, g)
	}
	return groups
}

// membersOf counts the members of a group.
func (as *audiences) membersOf(g *group) int {
	as.mu.Lock()
	defer as.mu.Unlock()
	return g.members
}

// followers counts those who follow a topic.
func (as *audiences) followers(topicID string) (n int64) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.byAsk {
		if a.topic.ID != topicID {
			continue
		}
		for _, g := range a.groups {
			n += int64(g.members)
		}
	}
	return n
}
