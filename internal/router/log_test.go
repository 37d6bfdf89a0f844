package router

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/content"
	"github.com/freshet-io/freshet/internal/jsonpatch"
)

func TestALogCountsEverythingThatHappensWithoutGaps(t *testing.T) {
	var l revisionLog
	at := func(version int) head {
		return head{pos: freshet.Position{Epoch: "e", Version: freshet.Version(version)}, at: time.UnixMilli(int64(version)), state: content.NewText([]byte("1"))}
	}
	whole := jsonpatch.Change{Kind: jsonpatch.Whole}
	l.append(at(3), nil, whole, fullBounds)
	l.append(at(7), nil, whole, fullBounds)
	if l.cursor != 2 || l.history.at(1) != 0 || l.history.position(at(7).pos) != 1 {
		t.Errorf("two documents made it %d", l.cursor)
	}
	l.clear()
	if l.cursor != 3 || l.state != nil || !l.pos.IsZero() || l.history.at(2) >= 0 || l.size(false) != 0 {
		t.Errorf("after the document went: %+v", l.head)
	}
	l.append(at(9), nil, whole, fullBounds)
	if l.cursor != 4 || l.history.at(4) != 0 {
		t.Errorf("the next document made it %d", l.cursor)
	}
}

func TestAnotherFormOfTheSameDocumentIsNoRevision(t *testing.T) {
	doc, err := jsonpatch.Parse([]byte(`[1,2,3]`), jsonpatch.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rules := content.SnapshotRules(jsonpatch.Limits{})
	by := carrierOf(newCarrier(rules, doc, nil))
	var l revisionLog
	l.append(head{pos: freshet.Position{Epoch: "e", Version: 1}, state: doc}, by, jsonpatch.Change{Kind: jsonpatch.Whole}, fullBounds)
	before := l.size(false)
	l.fold()
	folded, ok := l.state.(*content.Text)
	if !ok || by.load() != content.State(folded) || l.history.revisions[0].state != content.State(folded) {
		t.Error("the tape is still held somewhere: in the log, in its newest revision or in the grid")
	}
	if l.cursor != 1 || l.size(false) >= before || l.size(true) >= l.size(false) {
		t.Errorf("of %d bytes %d are left, and the cursor is %d", before, l.size(false), l.cursor)
	}
	renewed := content.NewText([]byte(`[1,2,3]`))
	l.renew(renewed, time.UnixMilli(5), nil)
	if l.cursor != 1 || !l.at.Equal(time.UnixMilli(5)) || l.history.revisions[0].state != content.State(renewed) {
		t.Error("a renewal changed more than the time")
	}
}
