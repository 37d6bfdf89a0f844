package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"
)

func TestProcessStateIsReadBehindAHostileName(t *testing.T) {
	const stat = "42 (a) b (c)) S 7 42 42 0 -1 4194560 100 0 0 0 150 50 10 5 20 0 3 0 100 1000 10\n"
	cpu, err := parseStat([]byte(stat))
	if err != nil || cpu != 2150*time.Millisecond {
		t.Errorf("%v, %v", cpu, err)
	}
	if parent, err := parseParent([]byte(stat)); err != nil || parent != 7 {
		t.Errorf("%v, %v", parent, err)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) S 1 2 3"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestMemoryLinesAreRead(t *testing.T) {
	const rollup = "00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss:               12345 kB\nPss:                 100 kB\n"
	if rss, pss := parseKB([]byte(rollup), "Rss:"), parseKB([]byte(rollup), "Pss:"); rss != 12345<<10 || pss != 100<<10 {
		t.Error(rss, pss)
	}
	if n := parseSocketMemory([]byte("sockets: used 9\nTCP: inuse 5 orphan 0 tw 0 alloc 6 mem 17\nUDP: inuse 0 mem 3\n")); n != 17 {
		t.Error(n)
	}
}

func TestMedianIsTakenMetricByMetric(t *testing.T) {
	m := median([]metrics{{"a": 1, "b": 5}, {"a": 9, "b": 4}, {"a": 2}})
	if m["a"] != 2 || m["b"] != 4.5 {
		t.Error(m)
	}
}

func exampleReport() *report {
	r := &report{}
	for name, cpu := range map[string]float64{"Freshet": 1, "Nchan": 4, "net/http": 5, "limit, waiting": 0.9} {
		r.addServer("sat1k", "a <crowd>", server{Name: name, Limit: strings.HasPrefix(name, "limit"), Median: metrics{cpuPerMillion: cpu, p50ms: 10 * cpu}})
	}
	r.addServer("idle", "idle", server{Name: "Freshet", Median: metrics{connections: 10_000, rssPerConn: 0.5, rssTotalMB: 50, fewCPUPercent: 0.5, idleCPUPercent: 1.5}})
	r.addServer("idle", "idle", server{Name: "limit, beats", Limit: true, Median: metrics{connections: 10_000, idleCPUPercent: 0.9}})
	r.Figures = r.figures()
	return r
}

func TestFiguresCompareWithTheBestPeerAndTheLimit(t *testing.T) {
	var got []string
	for _, f := range exampleReport().Figures {
		got = append(got, strings.Join(strings.Fields(f.String()), " "))
	}
	want := []string{
		"met 0.25 × (at most 0.4) a <crowd>: CPU per delivery (Nchan: 1 against 4)",
		"met 1.11 × (at most 1.25) a <crowd>: CPU per delivery (limit, waiting: 1 against 0.9)",
		"met 0.25 × (at most 0.5) a <crowd>: latency p50 (Nchan: 10 against 40)",
		"met 0.50 KB (at most 1) memory of an idle subscriber",
		"met 93.95 MB (at most 250) 100,000 idle subscribers: memory, scaled up from 10000",
		"NOT MET 10.50 % of a core (at most 5) 100,000 idle subscribers: CPU, scaled up from 10000 (limit, beats: 9)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPlotIsWellFormed(t *testing.T) {
	d := xml.NewDecoder(bytes.NewReader(plot(exampleReport())))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTableShowsEveryServer(t *testing.T) {
	var out bytes.Buffer
	printTable(&out, exampleReport())
	for _, name := range []string{"Freshet", "Nchan", "net/http", "limit, waiting", "NOT MET"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("%s is missing in\n%s", name, &out)
		}
	}
}
