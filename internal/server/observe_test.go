package server

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"

	"go.yaml.in/yaml/v3"
)

// TestAlertRulesLoadAsTheyAre reads them as strictly as Prometheus does: no member that it does not know, durations that it can
// read, and texts whose templates parse. What it cannot check is PromQL itself; e2e has a real Prometheus do that.
func TestAlertRulesLoadAsTheyAre(t *testing.T) {
	raw, err := os.ReadFile("../../observe/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         time.Duration     `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	in := yaml.NewDecoder(bytes.NewReader(raw))
	in.KnownFields(true)
	if err := in.Decode(&file); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] || r.For <= 0 || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%+v", r)
			}
			seen[r.Alert] = true
			balanced(t, r.Alert, r.Expr)
			if s := r.Labels["severity"]; s != "page" && s != "warn" && s != "info" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			for _, text := range r.Annotations {
				if _, err := template.New("").Parse("{{$labels := .}}" + text); err != nil {
					t.Errorf("%s: %v", r.Alert, err)
				}
			}
			if !strings.Contains(string(docs), r.Alert) {
				t.Errorf("docs/observe.md does not lead from %s to its cause", r.Alert)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d rules", len(seen))
	}
}

func TestTheDashboardLoadsAsItIs(t *testing.T) {
	raw, err := os.ReadFile("../../observe/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	type source struct{ Type, UID string }
	var d struct {
		Title, UID    string
		SchemaVersion int
		Templating    struct {
			List []struct{ Name, Type string }
		}
		Panels []struct {
			ID          int
			Title, Type string
			GridPos     struct{ H, W, X, Y int }
			Datasource  source
			Targets     []struct {
				RefID, Expr string
				Datasource  source
			}
		}
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 || !variables["datasource"] {
		t.Errorf("%q %q %d %v", d.Title, d.UID, d.SchemaVersion, variables)
	}
	type place struct{ x, y int }
	ids, taken := map[int]bool{}, map[place]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || p.Type == "" || p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[place{x, y}]; other != "" || x > 23 {
					t.Fatalf("%s lies over %s, or outside", p.Title, other)
				}
				taken[place{x, y}] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.RefID == "" {
				t.Errorf("%s: two queries are called %q", p.Title, q.RefID)
			}
			refs[q.RefID] = true
			balanced(t, p.Title, q.Expr)
			for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !variables[m[1]] {
					t.Errorf("%s asks for the variable %s, which does not exist", p.Title, m[1])
				}
			}
		}
	}
}

// balanced checks the brackets of an expression, outside of its texts.
func balanced(t *testing.T, where, expr string) {
	t.Helper()
	var open []rune
	pairs := map[rune]rune{')': '(', ']': '[', '}': '{'}
	for _, c := range regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, "") {
		switch c {
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != pairs[c] {
				t.Errorf("%s: the brackets of %s do not match", where, expr)
				return
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 || expr == "" {
		t.Errorf("%s: %q is not complete", where, expr)
	}
}
