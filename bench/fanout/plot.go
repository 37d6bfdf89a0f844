package main

import (
	"bytes"
	"fmt"
	"html"
)

// panel is one group of bars in the plot: one metric of one scenario. Shorter is better, except for connects.
type panel struct{ id, metric, title string }

var panels = []panel{
	{"sat1k", cpuPerMillion, "CPU seconds per million deliveries: 1,000 subscribers, 256 B, saturated"},
	{"sat10k", cpuPerMillion, "CPU seconds per million deliveries: 10,000 subscribers, 256 B, saturated"},
	{"fixed", cpuPerMillion, "CPU seconds per million deliveries: 100,000 deliveries/s"},
	{"large", cpuPerMillion, "CPU seconds per million deliveries: 100 subscribers, 4 KiB, saturated"},
	{"fixed", p99ms, "latency p99 in ms: 100,000 deliveries/s"},
	{"sat1k", p50ms, "latency p50 in ms: 1,000 subscribers, saturated"},
	{"sat10k", p50ms, "latency p50 in ms: 10,000 subscribers, saturated"},
	{"idle", rssPerConn, "memory of an idle subscriber, KB"},
	{"connects", connectsPerS, "connects per second (longer is better)"},
}

const (
	plotLeft, plotBar = 150, 520
	rowHeight         = 22
)

// plot draws the medians as bars, a group per panel, each on a scale of its own.
func plot(r *report) []byte {
	var b bytes.Buffer
	y := 40
	for _, p := range panels {
		y = drawPanel(&b, r, p, y)
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotLeft+plotBar+100, y)
	fmt.Fprintln(&all, `<rect width="100%" height="100%" fill="white"/>`)
	fmt.Fprintf(&all, `<text x="12" y="22" font-size="15">Freshet beside its peers, %s, %d cores, medians</text>`+"\n", r.At.Format("2006-01-02"), r.Machine.Cores)
	all.Write(b.Bytes())
	all.WriteString("</svg>\n")
	return all.Bytes()
}

func drawPanel(b *bytes.Buffer, r *report, p panel, y int) int {
	type bar struct {
		server
		value float64
	}
	var bars []bar
	largest := 0.0
	for _, o := range r.Scenarios {
		for _, s := range o.Servers {
			if v, ok := s.Median[p.metric]; ok && o.ID == p.id {
				bars = append(bars, bar{s, v})
				largest = max(largest, v)
			}
		}
	}
	if len(bars) == 0 || largest <= 0 {
		return y
	}
	fmt.Fprintf(b, `<text x="12" y="%d" font-weight="bold">%s</text>`+"\n", y+14, html.EscapeString(p.title))
	y += rowHeight
	for _, s := range bars {
		width := max(1, int(float64(plotBar)*s.value/largest))
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			plotLeft-8, y+14, html.EscapeString(s.Name), plotLeft, y+3, width, rowHeight-7, colour(s.server), plotLeft+width+6, y+14, short(s.value))
		y += rowHeight
	}
	return y + 12
}

// short writes three digits, and large numbers in full.
func short(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func colour(s server) string {
	switch {
	case s.Name == ours:
		return "#2060d0"
	case s.Limit:
		return "#bbbbbb"
	}
	return "#d08040"
}
