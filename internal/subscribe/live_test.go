package subscribe_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
)

func TestLiveStreamsAreListedAndCut(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic, other := h.topic("snapshot"), h.topic("snapshot")
		h.post(topic, `{"n":0}`)
		var streams []*stream
		for i := range 3 {
			headers := header{}
			if i == 2 {
				headers = header{"X-Sd-Compress": "true", "Accept-Encoding": "gzip"}
			}
			s := h.get("/v1/topics/"+topic.ID, headers)
			defer s.close()
			s.expect("snapshot", "")
			streams = append(streams, s)
		}
		waitFor(t, func() bool { // a reader may have an event before its server has noted that
			list, n := h.server.Live(freshet.ConnectionFilter{TopicID: topic.ID}, 0, 10)
			return n == 3 && !slices.ContainsFunc(list, func(c freshet.Connection) bool { return c.Lag > 0 })
		})
		if _, n := h.server.Live(freshet.ConnectionFilter{TopicID: other.ID}, 0, 10); n != 0 {
			t.Errorf("%d streams of a topic without any", n)
		}
		if n, none := h.server.Subscribers(topic.ID), h.server.Subscribers(other.ID); n != 3 || none != 0 {
			t.Errorf("%d and %d subscribers", n, none)
		}
		page, n := h.server.Live(freshet.ConnectionFilter{}, 1, 1)
		if len(page) != 1 || n != 3 {
			t.Errorf("a page of %d, %d in all", len(page), n)
		}
		list, _ := h.server.Live(freshet.ConnectionFilter{UserID: "user", AppID: "app"}, 0, 10)
		compressed := ""
		for _, c := range list {
			if c.TopicID != topic.ID || c.Lag != 0 || c.Bytes == 0 || c.Remote == "" || c.Since.IsZero() || !strings.HasPrefix(c.ID, c.Node+"-") {
				t.Errorf("%+v", c)
			}
			if c.Encoding == "compressed" {
				compressed = c.ID
			}
		}
		if !h.server.Cut(compressed) {
			t.Fatal("the stream was not found")
		}
		if e, err := streams[2].next(); err != nil || e.retry != "30000" {
			t.Errorf("it was cut with %+v, %v", e, err)
		}
		streams[2].expectEnd()
		waitFor(t, func() bool { return h.server.Connections() == 2 })
		for _, id := range []string{compressed, "", "x", list[0].Node + "-g-999", list[0].Node + "-0-1-1", list[0].ID + "0"} {
			if h.server.Cut(id) {
				t.Errorf("%q was cut", id)
			}
		}
		h.post(topic, `{"n":1}`)
		for _, s := range streams[:2] {
			s.expect("patch", "")
		}
	})
}

func TestACutNeverHitsAnotherWhoGotTheDescriptor(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.post(topic, `{}`)
		seen := map[string]bool{}
		for i := range 20 {
			s := h.get("/v1/topics/"+topic.ID, nil)
			s.expect("snapshot", `{}`)
			var list []freshet.Connection
			waitFor(t, func() bool { list, _ = h.server.Live(freshet.ConnectionFilter{}, 0, 10); return len(list) == 1 })
			if seen[list[0].ID] {
				t.Fatalf("stream %s has an identifier that another had: %s", strconv.Itoa(i), list[0].ID)
			}
			for id := range seen {
				if h.server.Cut(id) {
					t.Fatalf("%s was cut, and is gone", id)
				}
			}
			seen[list[0].ID] = true
			s.close()
			waitFor(t, func() bool { return h.server.Connections() == 0 })
		}
	})
}

func TestRefusalsAreRememberedByTopic(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.topic("snapshot")
		h.catalog.setRefusal("renewedkey000000", freshet.RevokedCredential)
		for range 3 {
			s := h.get("/v1/topics/"+topic.ID+"?X-Sd-Subscriber-Key=renewedkey000000", nil)
			s.expect("error", "")
			s.close()
		}
		got := h.server.Refusals(topic.ID)
		if len(got) != 1 || got[0].Code != 40111 || got[0].Count != 3 || strings.Contains(got[0].Message, "renewedkey") {
			t.Errorf("%+v", got)
		}
		if st := h.server.Stats(); st.Refused[40111] != 3 {
			t.Errorf("%d refusals are counted", st.Refused[40111])
		}
	})
}

func TestStreamsThatEndedAreRememberedByTopic(t *testing.T) {
	forEachPath(t, options{}, func(t *testing.T, h *harness) {
		topic := h.polled("https://api.example.com/quotes")
		s := h.get("/v1/topics/"+topic.ID, nil)
		defer s.close()
		waitFor(t, func() bool { return h.server.Connections() == 1 })
		h.fail(topic, failure(freshet.SourceUnreachable, true))
		s.expectCode(60100)
		if got := h.server.Refusals(topic.ID); len(got) != 1 || got[0].Code != 60100 || got[0].Count != 1 || got[0].Message != "It fails" {
			t.Errorf("%+v", got)
		}
	})
}
