package server

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

// shown are the names of all series that a whole server shows.
func shown(t *testing.T) map[string]bool {
	t.Helper()
	_, text := get(t, run(t, nil).address("admin"), "/metrics")
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		if name := regexp.MustCompile(`^[a-z_]+`).FindString(line); name != "" {
			names[name] = true
		}
	}
	return names
}

func TestEveryPromiseHasAMetric(t *testing.T) {
	names := shown(t)
	for _, want := range []string{
		"freshet_publish_seconds_bucket", "freshet_diff_seconds_bucket", "freshet_fanout_seconds_bucket", "freshet_delivery_lag_seconds_bucket",
		"freshet_cursors_behind", "freshet_sent_bytes_total", "freshet_deliveries_total", "freshet_compression_in_bytes_total",
		"freshet_compression_out_bytes_total", "freshet_polls_total", "freshet_poll_lateness_seconds_bucket", "freshet_store_errors_total", "freshet_store_statements_total",
		"freshet_grid_errors_total", "freshet_connections", "freshet_transports", "freshet_heartbeats_total", "freshet_streams_ended_total",
		"freshet_subscriptions_refused_total", "freshet_publications_total", "freshet_usage_flush_errors_total", "go_goroutines", "freshet_build_info",
		"freshet_store_writable", "freshet_data_free_bytes", "freshet_data_size_bytes",
	} {
		if !names[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestDashboardAndAlertsAskForMetricsThatExist(t *testing.T) {
	names := shown(t)
	for _, file := range []string{"grafana.json", "alerts.yaml"} {
		raw, err := os.ReadFile("../../observe/" + file)
		if err != nil {
			t.Fatal(err)
		}
		asked := regexp.MustCompile(`\b(freshet|go|process)_[a-z_]+`).FindAllString(string(raw), -1)
		if len(asked) < 15 {
			t.Errorf("%s asks for %d metrics only", file, len(asked))
		}
		for _, name := range asked {
			if !names[name] {
				t.Errorf("%s asks for %s, which does not exist", file, name)
			}
		}
	}
	raw, err := os.ReadFile("../../observe/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if raw, err = os.ReadFile("../../observe/alerts.yaml"); err == nil {
		err = yaml.Unmarshal(raw, &alerts)
	}
	if err != nil || len(alerts.Groups) == 0 {
		t.Fatalf("%d groups of rules, %v", len(alerts.Groups), err)
	}
	for _, r := range alerts.Groups[0].Rules {
		if r.Alert == "" || r.Expr == "" {
			t.Errorf("a rule without a name or an expression: %+v", r)
		}
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || p.Targets[0].Expr == "" {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
	}
}

func TestAHundredThousandTopicsGiveNoMoreSeriesThanOne(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a hundred thousand topics")
	}
	g := memory.New(memory.Options{})
	defer g.Close()
	r := router.New(g, router.Options{})
	defer r.Close()
	m := newMetrics("test")
	m.parts.Store(&parts{router: r, grid: &countedGrid{Grid: g}})
	series := func() (n int) {
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				n++
				if h := one.GetHistogram(); h != nil {
					n += len(h.GetBucket()) + 2
				}
				n += len(one.GetSummary().GetQuantile())
			}
		}
		return n
	}
	before := series()
	for range 100_000 {
		topic := freshet.Topic{ID: freshet.NewID()}
		if _, err := r.Publish(t.Context(), &topic, router.Publication{Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if after := series(); after != before || after > 2000 {
		t.Errorf("%d series with one topic, %d with 100,000", before, after)
	}
	if st := r.Stats(); st.Topics != 100_000 || st.Publish.Count != 100_000 {
		t.Errorf("%d topics, %d publications", st.Topics, st.Publish.Count)
	}
}
