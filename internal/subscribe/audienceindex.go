package subscribe

import "github.com/freshet-io/freshet/internal/grid"

// audienceIndex finds audiences by what notices can be about, however many others there are. It belongs to whoever holds the lock of
// the audiences.
type audienceIndex struct {
	byTopic       map[string][]*audience // few of each
	byApp, byUser map[string]map[*audience]struct{}
}

func newAudienceIndex() audienceIndex {
	return audienceIndex{
		byTopic: make(map[string][]*audience),
		byApp:   make(map[string]map[*audience]struct{}), byUser: make(map[string]map[*audience]struct{}),
	}
}

func (x *audienceIndex) add(a *audience) {
	x.byTopic[a.ask.TopicID] = append(x.byTopic[a.ask.TopicID], a)
	addTo(x.byApp, a.appID, a)
	addTo(x.byUser, a.userID, a)
}

func addTo(sets map[string]map[*audience]struct{}, id string, a *audience) {
	if sets[id] == nil {
		sets[id] = make(map[*audience]struct{})
	}
	sets[id][a] = struct{}{}
}

func (x *audienceIndex) remove(a *audience) {
	id := a.ask.TopicID
	x.byTopic[id] = without(x.byTopic[id], a)
	if len(x.byTopic[id]) == 0 {
		delete(x.byTopic, id)
	}
	removeFrom(x.byApp, a.appID, a)
	removeFrom(x.byUser, a.userID, a)
}

func removeFrom(sets map[string]map[*audience]struct{}, id string, a *audience) {
	delete(sets[id], a)
	if len(sets[id]) == 0 {
		delete(sets, id)
	}
}

// without takes one out, in no particular order.
func without(all []*audience, a *audience) []*audience {
	for i, other := range all {
		if other == a {
			last := len(all) - 1
			all[i], all[last] = all[last], nil
			return all[:last]
		}
	}
	return all
}

// collect adds the audiences that a notice is about.
func (x *audienceIndex) collect(n grid.Notice, to map[*audience]struct{}) {
	set := map[*audience]struct{}(nil)
	switch n.Scope {
	case grid.ScopeTopic, grid.ScopeSource:
		for _, a := range x.byTopic[n.ID] {
			to[a] = struct{}{}
		}
	case grid.ScopeApp:
		set = x.byApp[n.ID]
	case grid.ScopeUser:
		set = x.byUser[n.ID]
	}
	for a := range set {
		to[a] = struct{}{}
	}
}
