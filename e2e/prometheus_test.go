package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// query is one that operators rely on: of a panel of the dashboard, or of an alert.
type query struct{ of, expr string }

// thresholds are left out when a query must have data on a server that is busy and well.
var thresholds = regexp.MustCompile(` > [0-9.]+`)

// TestARealPrometheusAnswersTheDashboardAndTheAlerts scrapes a busy server. Every expression must parse and, thresholds aside, find
// what it asks for: a label that does not exist, or a sum of which one half is never there, would be an alert that never comes.
func TestARealPrometheusAnswersTheDashboardAndTheAlerts(t *testing.T) {
	t.Parallel()
	p := start(t)
	prometheus := startPrometheus(t, p.Admin)
	queries := append(dashboard(t), alerts(t)...)
	if len(queries) < 40 {
		t.Fatalf("there are only %d queries", len(queries))
	}
	work := makeBusy(t, p)
	var missing []string
	for deadline := time.Now().Add(patience); len(queries) > 0 && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		work()
		missing = nil
		var left []query
		for _, q := range queries {
			if prometheus.ask(q) == 0 {
				left = append(left, q)
				missing = append(missing, q.of+": "+q.expr)
			}
		}
		queries = left
	}
	if len(missing) > 0 {
		t.Errorf("no data for\n%s", strings.Join(missing, "\n"))
	}
	prometheus.checkRules()
}

// makeBusy returns what a server is to be kept busy with: publications, all kinds of streams, polls, refusals.
func makeBusy(t *testing.T, p *process) func() {
	t.Helper()
	a, _, made, topic := tenantOf(t, p, "ada@example.com")
	p.subscribe("/v1/topics/" + topic)
	p.subscribe("/v1/topics/"+topic, "X-Sd-Compress", "true", "Accept-Encoding", "gzip")
	p.subscribe("/" + newOtherAPI(t).URL + "/prices")
	n := 0
	return func() {
		n++
		if status := postTo(t, p, topic, made.PublisherKey, fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("word ", 200))); status != http.StatusNoContent {
			t.Fatalf("publishing answers %d", status)
		}
		p.subscribe("/v1/topics/none").expectLast(40401)
		var gone named
		a.must(http.StatusCreated, "POST", "/api/v1/apps/"+made.ID+"/topics", postTopic("Short"), &gone)
		s := p.subscribe("/v1/topics/" + gone.ID)
		a.must(http.StatusNoContent, "DELETE", "/api/v1/topics/"+gone.ID, nil, nil)
		s.expectLast(60000)
	}
}

func dashboard(t *testing.T) (all []query) {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(observed(t, "grafana.json"), &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$job", "fresh.*", "$instance", ".*", "$__rate_interval", "1m")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all = append(all, query{panel.Title, fill.Replace(target.Expr)})
		}
	}
	return all
}

func alerts(t *testing.T) (all []query) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(observed(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Groups[0].Rules {
		switch r.Alert {
		case "FreshetDown", "FreshetNodeGone": // what they ask for is that there is nothing
		default:
			all = append(all, query{r.Alert, r.Expr})
		}
	}
	return all
}

func observed(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../observe/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// prometheus is a real one, with the alert rules as they are.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "alerts.yaml"), string(observed(t, "alerts.yaml")))
	config := filepath.Join(dir, "prometheus.yaml")
	write(t, config, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs: [{job_name: freshet, static_configs: [{targets: [%q]}]}]
`, target))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--log.format=json")
	server := launch(t, cmd)
	server.Await("Server is ready to receive web requests.")
	return &prometheus{t, fmt.Sprint("http://", server.Await("Listening on")["address"])}
}

func (p *prometheus) get(path string, query url.Values, into any) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "GET", p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	said := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || said.Status != "success" {
		p.t.Fatalf("%s: %s %v", query, said.Error, err)
	}
}

// ask returns how many series a query finds. One that does not parse ends the test.
func (p *prometheus) ask(q query) int {
	p.t.Helper()
	var found struct{ Result []any }
	p.get("/api/v1/query", url.Values{"query": {q.expr}}, &found)
	p.get("/api/v1/query", url.Values{"query": {thresholds.ReplaceAllString(q.expr, " >= 0")}}, &found)
	return len(found.Result)
}

// checkRules waits until every rule was evaluated, without a complaint.
func (p *prometheus) checkRules() {
	p.t.Helper()
	type group struct {
		Rules []struct{ Name, Health, LastError string }
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		var all struct{ Groups []group }
		p.get("/api/v1/rules", nil, &all)
		if len(all.Groups) != 1 || len(all.Groups[0].Rules) < 14 {
			p.t.Fatalf("Prometheus has the rules %+v", all)
		}
		waiting := 0
		for _, r := range all.Groups[0].Rules {
			if r.Health == "err" {
				p.t.Errorf("%s: %s", r.Name, r.LastError)
			} else if r.Health != "ok" {
				waiting++
			}
		}
		if waiting == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("rules are not evaluated: %+v", all)
		}
	}
}
