package jetstream

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestARosterTellsWhoCameFirstAndLeftLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoster()
		var news []string
		r.listeners.Add(func(a arrival) { news = append(news, fmt.Sprint(a.topic, a.present)) })
		hear := func(text string, want ...string) {
			t.Helper()
			node, kind, rest, ok := parseAnnouncement([]byte(text))
			if !ok {
				t.Fatalf("%q is no announcement", text)
			}
			r.announced(node, kind, rest)
			slices.Sort(news)
			if fmt.Sprint(news) != fmt.Sprint(want) {
				t.Errorf("after %q: %v, want %v", text, news, want)
			}
			news = nil
		}
		hear("one + a", "atrue")
		hear("one + a")
		hear("two + a")
		hear("one - a")
		hear("two - a", "afalse")
		hear("two - a")
		hear("one = r1 a b", "atrue", "btrue")
		hear("one . r1")
		hear("one = r2 b")
		hear("one + c", "ctrue") // while the round is told
		hear("one . r2", "afalse")
		hear("one . r3", "bfalse", "cfalse") // neither was told again
		hear("one + d", "dtrue")
		time.Sleep(silentAfter)
		r.forgetSilent()
		if fmt.Sprint(news) != "[dfalse]" || len(r.others) != 0 || len(r.anywhere) != 0 {
			t.Errorf("after a long silence: %v; %d nodes, %d topics", news, len(r.others), len(r.anywhere))
		}
	})
}

func TestAnnouncementsSurviveTheWire(t *testing.T) {
	node, kind, rest, ok := parseAnnouncement(announcement("node", announceAll, "round", "a", "b"))
	if !ok || node != "node" || kind != announceAll || fmt.Sprint(rest) != "[round a b]" {
		t.Errorf("got %q %q %q, %v", node, kind, rest, ok)
	}
	if _, _, _, ok := parseAnnouncement([]byte("node +")); ok {
		t.Error("one without a topic is taken")
	}
}
