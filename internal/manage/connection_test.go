package manage

import (
	"slices"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/router"
)

func TestAdminsSeeAndCutConnections(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada, eve := s.admin(), s.tenant(), s.tenant()
	for i, c := range []tenant{ada, eve} {
		s.streams.open = append(s.streams.open, freshet.Connection{
			ID: []string{"a", "e"}[i], Node: "n", UserID: c.id, AppID: c.app, TopicID: c.topic, Since: time.Now(), Remote: "192.0.2.7:1",
			Mode: "patch", Encoding: "identity", Transport: "loop", Bytes: 7, Lag: 3})
	}
	for query, want := range map[string]float64{
		"": 2, "?user=" + ada.id: 1, "?app=" + eve.app: 1, "?topic=" + ada.topic: 1, "?topic=" + ada.topic + "&user=" + eve.id: 0, "?per_page=1": 2,
	} {
		if got := admin.call("GET", "/admin/connections"+query, nil).want(200).at("total"); got != want {
			t.Errorf("%s: %v connections, want %v", query, got, want)
		}
	}
	eve.call("DELETE", "/admin/connections/a", nil).want(404)
	if n := len(s.streams.open); n != 2 {
		t.Fatalf("%d are left after somebody tried who may not", n)
	}
	admin.call("DELETE", "/admin/connections/a", nil).want(204)
	admin.call("DELETE", "/admin/connections/a", nil).want(404)
	entry := admin.call("GET", "/admin/audit", nil).want(200).at("items").([]any)[0].(map[string]any)
	if entry["action"] != "connection.cut" || entry["subject"] != "a" {
		t.Errorf("on record is %v", entry)
	}
}

func TestExplainSaysWhyNothingIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin, ada := s.admin(), s.tenant()
	now := time.Now()
	codes := func(path string, c *client) []string {
		t.Helper()
		var all []string
		for _, r := range c.call("GET", path, nil).want(200).at("reasons").([]any) {
			all = append(all, r.(map[string]any)["code"].(string))
		}
		return all
	}
	at := freshet.Position{Epoch: "e", Version: 1}
	polled := ada.call("POST", "/apps/"+ada.app+"/topics", topicBody("http-poller", map[string]any{"url": "http://example.com/"}, nil)).want(201).text("id")
	failure := freshet.SourceFailure{Kind: freshet.SourceFailed, Msg: "HTTP 500", Since: now}
	if _, err := s.grid.Swap(t.Context(), freshet.SourceValue(polled), "", failure.Text(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := ada.call("GET", "/topics/"+ada.topic+"/explain", nil).want(200).at("subscribers"); n != 8.0 {
		t.Errorf("%v subscribers", n)
	}
	for _, c := range []struct {
		topic  string
		lately router.Lately
		want   []string
	}{
		{ada.topic, router.Lately{}, []string{"unknown"}},
		{ada.topic, router.Lately{Followed: true}, []string{"nothing_published"}},
		{ada.topic, router.Lately{Followed: true, Vanished: now}, []string{"expired"}},
		{ada.topic, router.Lately{Followed: true, Position: at, At: now}, nil},
		{ada.topic, router.Lately{Followed: true, Position: at, At: now, Identical: router.Recent{Count: 2, Last: now}}, []string{"identical"}},
		{ada.topic, router.Lately{Followed: true, Dropped: router.Recent{Count: 2, Last: now}}, []string{"nothing_published", "dropped"}},
		{ada.topic, router.Lately{Followed: true, Position: at, Refused: router.Recent{Count: 2, Last: now, Why: "no"}}, []string{"publications_refused"}},
		{polled, router.Lately{Followed: true}, []string{"source_failing", "nothing_published"}},
	} {
		s.topics[c.topic] = c.lately
		if got := codes("/topics/"+c.topic+"/explain", ada.client); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.lately, got, c.want)
		}
	}
	s.topics[ada.topic] = router.Lately{Followed: true, Position: at, At: now}
	s.streams.open = []freshet.Connection{{ID: "a", UserID: ada.id, TopicID: ada.topic, Mode: "patch", Encoding: "identity", Transport: "loop"}}
	if got := codes("/admin/connections/a/explain", admin); len(got) != 0 { // a list, though empty
		t.Errorf("%v for a connection that is well", got)
	}
	s.streams.refused = []freshet.Refusal{{Code: 40111, Message: "renewed", Count: 3, Last: now}}
	s.streams.open = []freshet.Connection{{ID: "a", UserID: ada.id, TopicID: ada.topic, Mode: "patch", Encoding: "identity", Transport: "loop", Lag: 2, Filtered: true, Behind: true}}
	admin.call("PATCH", "/admin/users/"+ada.id, map[string]any{"status": "disabled"}).want(200)
	want := []string{"behind", "lagging", "filtered", "account_disabled", "subscribers_refused"}
	if got := codes("/admin/connections/a/explain", admin); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	admin.call("GET", "/admin/connections/b/explain", nil).want(404)
}
