package manage

import (
	"strconv"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/usage"
)

func TestUsageIsReportedByTopicAppAndForEverybody(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ada, eve, admin := s.tenant(), s.tenant(), s.admin()
	second := ada.newTopic(ada.app).text("id")
	use := func(c tenant, topic string, n int64) {
		s.meter.Add(usage.Place{TopicID: topic, AppID: c.app, UserID: c.id}, freshet.Usage{
			Messages: n, Bytes: 10 * n, FullBytes: 30 * n, Publications: n, Polls: 3 * n, PollsNotModified: n, PollsFailed: n,
			Connected: time.Duration(n) * time.Second, Lag: freshet.Lags{3: n}})
	}
	use(ada, ada.topic, 1)
	use(ada, second, 2)
	use(eve, eve.topic, 4)
	check := func() {
		t.Helper()
		for _, c := range []struct {
			by   *client
			path string
			want float64
		}{
			{ada.client, "/topics/" + ada.topic + "/usage", 1}, {ada.client, "/apps/" + ada.app + "/usage", 3},
			{ada.client, "/users/" + ada.id + "/usage", 3}, {admin, "/users/" + eve.id + "/usage", 4},
			{admin, "/topics/" + second + "/usage", 2}, {admin, "/admin/usage", 7},
		} {
			a := c.by.call("GET", c.path, nil).want(200)
			hours := a.at("hours").([]any)
			if len(hours) != 1 || hours[0].(map[string]any)["messages"] != c.want || a.at("total.messages") != c.want ||
				a.at("total.bytes_saved") != 20*c.want || a.at("total.connection_seconds") != c.want ||
				a.at("total.polls_ok") != c.want || a.at("total.polls_failed") != c.want {
				t.Errorf("%s: %s", c.path, a.body)
			}
			bounds, counts := a.at("delivery_lag_bounds_ms").([]any), a.at("total.delivery_lag.counts").([]any)
			p50, _ := a.at("total.delivery_lag.p50_ms").(float64)
			if len(counts) != len(bounds)+1 || counts[3] != c.want || p50 <= bounds[2].(float64) || p50 > bounds[3].(float64) {
				t.Errorf("%s: %s", c.path, a.body)
			}
		}
	}
	check()
	if err := s.meter.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	s.restart()
	check()
	for query, want := range map[string]string{
		"": eve.id, "?by=topic&order=polls_failed&limit=1": eve.topic, "?by=app&order=bytes": eve.app,
	} {
		a := admin.call("GET", "/admin/usage/top"+query, nil).want(200)
		if first := a.at("items").([]any)[0].(map[string]any); first["id"] != want || first["messages"] != 4.0 || first["user"] != eve.id {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	admin.call("GET", "/admin/usage/top?order=hour", nil).want(400)
	ada.call("GET", "/admin/usage/top", nil).want(404)
	ada.call("DELETE", "/topics/"+second, nil).want(204)
	if got := ada.call("GET", "/apps/"+ada.app+"/usage", nil).want(200).at("total.messages"); got != 3.0 {
		t.Errorf("without a deleted topic the app used %v", got)
	}
}

func TestTheSpanOfAReportIsChecked(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	for query, field := range map[string]string{
		"from=yesterday": "from", "to=-1": "to", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "from",
		"from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z": "from", "to=99999999999999999": "to", "from=99999999999999999999": "from",
	} {
		if _, named := admin.call("GET", "/admin/usage?"+query, nil).want(400).faults()[field]; !named {
			t.Errorf("%s: the answer does not name %s", query, field)
		}
	}
	at := time.Date(2026, 1, 1, 10, 30, 0, 0, time.UTC)
	a := admin.call("GET", "/admin/usage?from="+strconv.FormatInt(at.UnixMilli(), 10)+"&to=2026-01-01T12:00:01Z", nil).want(200)
	if a.at("from") != "2026-01-01T10:00:00Z" || a.at("to") != "2026-01-01T13:00:00Z" {
		t.Errorf("%s", a.body)
	}
}
