package subscribe

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/usage"
)

var (
	testAsk   = catalog.SubscribeAsk{TopicID: "topic", Key: "key"}
	testGrant = catalog.Grant{Topic: freshet.Topic{ID: "topic"}, AppID: "app", UserID: "user"}
)

func TestADetachedGroupKeepsItsMembersAndGetsNoOthers(t *testing.T) {
	as := newAudiences(nil)
	old, first := as.enter(testAsk, groupKey{}, &testGrant)
	if again, another := as.enter(testAsk, groupKey{}, &testGrant); !first || another || again != old || as.membersOf(old) != 2 {
		t.Fatal("two who ask the same are not in one group")
	}
	if legacy, first := as.enter(testAsk, groupKey{legacy: true}, &testGrant); !first || legacy == old || legacy.audience != old.audience {
		t.Fatal("those who get other bytes are not in another group of the same audience")
	}
	as.detach(old)
	fresh, first := as.enter(testAsk, groupKey{}, &testGrant)
	if !first || fresh == old || as.membersOf(old) != 2 {
		t.Fatal("a detached group got a member")
	}
	if as.leave(old) || !as.leave(old) {
		t.Error("the last one of a detached group is not known")
	}
	if n := as.followers("topic"); n != 2 {
		t.Errorf("%d follow the topic", n)
	}
}

func TestAnAudienceIsForgottenWithItsLastGroup(t *testing.T) {
	as := newAudiences(nil)
	g, _ := as.enter(testAsk, groupKey{}, &testGrant)
	if !as.leave(g) || len(as.byAsk) != 0 {
		t.Error("it is still there")
	}
}

func TestOnlyAnOpenGroupIsEnteredNow(t *testing.T) {
	as := newAudiences(nil)
	everybody := func(*audience) bool { return true }
	g, _ := as.enter(testAsk, groupKey{}, &testGrant)
	if as.enterReady(&testAsk, groupKey{}, everybody) != nil {
		t.Error("a group that is being opened was entered")
	}
	close(g.ready)
	if as.enterReady(&testAsk, groupKey{}, func(*audience) bool { return false }) != nil {
		t.Error("one who is not admitted entered")
	}
	if as.enterReady(&testAsk, groupKey{}, everybody) != g || as.membersOf(g) != 2 {
		t.Error("an open group was not entered")
	}
	as.detach(g)
	if as.enterReady(&testAsk, groupKey{}, everybody) != nil {
		t.Error("a detached group was entered")
	}
}

// TestWhoeverJoinsAfterANoticeIsAskedForAgain: the notice found no stream of theirs.
func TestWhoeverJoinsAfterANoticeIsAskedForAgain(t *testing.T) {
	q := newRecheckQueue()
	a := newAudience(testAsk, &testGrant)
	q.joined(a, q.seen())
	if work := q.take(); len(work.suspects) != 0 {
		t.Error("one who joined without a notice is suspect")
	}
	seen := q.seen()
	q.addNotice(grid.Notice{Scope: grid.ScopeApp, ID: "app"})
	q.joined(a, seen)
	work := q.take()
	if len(work.suspects) != 1 || len(work.notices) != 1 {
		t.Errorf("%+v", work)
	}
	if rest := q.take(); len(rest.suspects)+len(rest.notices) > 0 {
		t.Errorf("%+v is left", rest)
	}
}

// TestANoticeAboutEverythingIsLeftToThoseWhoAskForAll: it must not hold up notices about somebody.
func TestANoticeAboutEverythingIsLeftToThoseWhoAskForAll(t *testing.T) {
	q := newRecheckQueue()
	a := newAudience(testAsk, &testGrant)
	seen := q.seen()
	for range 2 {
		q.addNotice(grid.Notice{Scope: grid.ScopeCatalog})
	}
	if len(q.all) != 1 || len(q.take().notices) != 0 {
		t.Errorf("%d signals", len(q.all))
	}
	q.joined(a, seen)
	if work := q.take(); len(work.suspects) != 1 {
		t.Error("one who joined after it is not suspect")
	}
}

func TestNoticesConcernWhomTheyName(t *testing.T) {
	as := newAudiences(nil)
	g, _ := as.enter(testAsk, groupKey{}, &testGrant)
	other := testAsk
	other.TopicID = "another"
	as.enter(other, groupKey{}, &catalog.Grant{UserID: "other", AppID: "another"})
	concerns := func(found []*audience) bool { return len(found) == 1 && found[0] == g.audience }
	for _, c := range []struct {
		notice             grid.Notice
		permission, source bool
	}{
		{grid.Notice{Scope: grid.ScopeTopic, ID: "topic"}, true, false},
		{grid.Notice{Scope: grid.ScopeUser, ID: "user"}, true, false},
		{grid.Notice{Scope: grid.ScopeSource, ID: "topic"}, false, true},
		{grid.Notice{Scope: grid.ScopeTopic, ID: "other"}, false, false},
		{grid.Notice{Scope: grid.ScopePoll, ID: "topic"}, false, false},
		{grid.Notice{Scope: grid.ScopeGateway, ID: "topic"}, false, false},
	} {
		q := newRecheckQueue()
		q.addNotice(c.notice)
		work := q.take()
		permission, source := as.about(work.ofPermissions()), as.about(work.ofSources())
		if concerns(permission) != c.permission || concerns(source) != c.source || len(permission)+len(source) > 1 {
			t.Errorf("%+v: permission %v, source %v", c.notice, permission, source)
		}
	}
	if found := as.about(slices.Values([]grid.Notice{
		{Scope: grid.ScopeTopic, ID: "topic"}, {Scope: grid.ScopeUser, ID: "user"}, {Scope: grid.ScopeApp, ID: "another"},
	})); len(found) != 2 {
		t.Errorf("%d audiences, each once", len(found))
	}
	as.detach(g)
	if found := as.about(slices.Values([]grid.Notice{{Scope: grid.ScopeTopic, ID: "topic"}, {Scope: grid.ScopeUser, ID: "user"}})); len(found) != 0 {
		t.Error("who left is found")
	}
}

func TestTheStreamsOfASpentAccountEnd(t *testing.T) {
	as := newAudiences(nil)
	g, _ := as.enter(testAsk, groupKey{}, &testGrant)
	ended := make(map[*audience]error)
	c := &rechecker{audiences: as, queue: newRecheckQueue(), end: func(a *audience, reason error) { ended[a] = reason }}
	c.queue.addSpent(usage.User("somebody else"))
	c.recheck(c.queue.take())
	if len(ended) != 0 {
		t.Error("streams of another account ended")
	}
	c.queue.addSpent(usage.User("user"))
	c.recheck(c.queue.take())
	if freshet.KindOf(ended[g.audience]) != freshet.MessageLimit {
		t.Errorf("%v", ended)
	}
}

func TestWhoIsRefusedLeavesNoSeatTaken(t *testing.T) {
	q := &quotas{edition: editionLimit{2, "full"}, seats: newSeats(slog.New(slog.DiscardHandler), nil, time.Millisecond)}
	defer q.seats.close()
	limited := testGrant
	limited.Quotas.Connections = 1
	if err := q.enter(t.Context(), &limited); err != nil {
		t.Fatal(err)
	}
	if err := q.enter(t.Context(), &limited); freshet.KindOf(err) != freshet.ConnectionLimit || q.connections.Load() != 1 {
		t.Fatalf("%v, %d connections", err, q.connections.Load())
	}
	other := catalog.Grant{UserID: "other", AppID: "another"}
	if err := q.enter(t.Context(), &other); err != nil {
		t.Fatalf("the one who was refused has a seat of the edition: %v", err)
	}
	if err := q.enter(t.Context(), &catalog.Grant{UserID: "third", AppID: "third"}); freshet.KindOf(err) != freshet.ConnectionLimit {
		t.Fatalf("beyond the edition: %v", err)
	}
	q.leave("user", "app")
	if err := q.enter(t.Context(), &limited); err != nil {
		t.Errorf("a seat that is free again: %v", err)
	}
	if q.enterNow("other", "another") {
		t.Error("a limited edition let somebody in without counting")
	}
}
