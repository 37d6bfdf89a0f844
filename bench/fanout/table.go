package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// column is one metric of a table.
type column struct {
	metric, head, format string
}

// columns of the scenarios that are not loads.
var columns = map[string][]column{
	"connects": {{connectsPerS, "connects/s", "%.0f"}, {cpuPerConnect, "CPU µs each", "%.0f"}, {connections, "connections", "%.0f"}, {retriedConnects, "retried", "%.0f"}},
	"compress": {{cpuPlain, "CPU s/M off", "%.2f"}, {cpuCompressed, "CPU s/M on", "%.2f"}, {compressRatio, "on/off", "%.2f"},
		{bytesPerEvent, "B off", "%.0f"}, {bytesCompressed, "B on", "%.0f"}},
	"idle": {{connections, "connections", "%.0f"}, {rssPerConn, "RSS KB each", "%.2f"}, {pssPerConn, "PSS KB each", "%.2f"}, {rssEarly, "RSS KB at once", "%.2f"},
		{rssTotalMB, "RSS MB", "%.0f"}, {socketPerConn, "kernel KB each", "%.1f"}, {idleCPUPercent, "CPU %", "%.1f"}, {fewCPUPercent, "CPU % with 100", "%.1f"}},
	"slow": {{slowRSSGrowthMB, "RSS MB by it", "%.2f"}, {rssGrowthMB, "RSS MB in all", "%.2f"}, {slowP99Ratio, "p99 with/without", "%.2f"}, {p99ms, "p99 ms", "%.2f"},
		{slowEndedRight, "ended right", "%.0f"}, {slowCuts, "cut", "%.0f"}},
}

var loadColumns = []column{{cpuPerMillion, "CPU s/M", "%.2f"}, {deliveriesPerS, "deliveries/s", "%.0f"}, {publicationsS, "publications/s", "%.0f"},
	{p50ms, "p50 ms", "%.2f"}, {p99ms, "p99 ms", "%.2f"}, {missedPercent, "merged or lost %", "%.2f"}, {bytesPerEvent, "B/delivery", "%.0f"}, {cpuCores, "cores", "%.2f"}}

func columnsOf(id string) []column {
	if c, ok := columns[id]; ok {
		return c
	}
	return loadColumns
}

// printTable prints the medians, scenario by scenario, and then the figures.
func printTable(out io.Writer, r *report) {
	if r.Apart {
		fmt.Fprintf(out, "\nEach server is charged with its own part of TCP only, and has %d of the cores.\n", r.Machine.Cores)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, o := range r.Scenarios {
		fmt.Fprintf(w, "\n%s\t\n", o.Title)
		cols := columnsOf(o.ID)
		heads := make([]string, len(cols))
		for i, c := range cols {
			heads[i] = c.head
		}
		fmt.Fprintf(w, "\t%s\t\n", strings.Join(heads, "\t"))
		for _, s := range o.Servers {
			if s.Median == nil {
				continue // said below
			}
			fmt.Fprintf(w, "%s\t%s\t\n", s.Name, strings.Join(cells(cols, s.Median), "\t"))
		}
		w.Flush()
		for _, s := range o.Servers {
			if s.Failure != "" {
				fmt.Fprintf(out, "  %s failed: %s\n", s.Name, s.Failure)
			}
		}
	}
	if len(r.Figures) == 0 {
		return
	}
	fmt.Fprintln(out, "\nFigures")
	for _, f := range r.Figures {
		fmt.Fprintln(out, "  "+f.String())
	}
}

func cells(cols []column, m metrics) []string {
	texts := make([]string, len(cols))
	for i, c := range cols {
		texts[i] = "–"
		if v, ok := m[c.metric]; ok {
			texts[i] = fmt.Sprintf(c.format, v)
		}
	}
	return texts
}

// String is a line like "met      0.31 ×  (at most 0.4)  …".
func (f figure) String() string {
	verdict, bound := "NOT MET", "at least"
	if f.Met {
		verdict = "met"
	}
	if f.AtMost {
		bound = "at most"
	}
	text := fmt.Sprintf("%-8s %8.2f %s (%s %g)  %s", verdict, f.Value, f.Unit, bound, f.Bound, f.Text)
	if f.Beside != "" {
		text += " (" + f.Beside + ")"
	}
	return text
}

// brief is one line of progress.
func brief(m metrics) string {
	for _, cols := range [][]column{loadColumns[:6], columns["connects"], columns["compress"], columns["idle"], columns["slow"]} {
		if _, ok := m[cols[0].metric]; !ok {
			continue
		}
		var parts []string
		for i, text := range cells(cols, m) {
			parts = append(parts, cols[i].head+" "+text)
		}
		return strings.Join(parts, "  ")
	}
	return ""
}
