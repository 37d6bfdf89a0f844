package main

import (
	"fmt"
	"io"
	"time"

	"github.com/freshet-io/freshet/bench/diff"
)

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e3) }

func printTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "Processor time in microseconds per step; bytes are those of all patches of a stream.")
	fmt.Fprintln(w)
	fmt.Fprintln(w, "| stream | document | freshet | unguided | wI2L | wI2L, previous decoded | sonic Valid | encoding/json Valid | wI2L ÷ freshet | freshet ÷ sonic | freshet ÷ encoding/json | bytes: freshet | wI2L | wI2L LCS+R. |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		small := "–"
		if r.small != nil {
			small = fmt.Sprint(r.small.Bytes)
		}
		fmt.Fprintf(w, "| %s | %.1f KB | %s | %s | %s | %s | %s | %s | %.1f | %.2f | %.2f | %d | %d | %s |\n",
			r.stream.Name, float64(r.stream.Bytes())/1e3, micros(r.ours.Step), micros(r.plain.Step), micros(r.peer.Step), micros(r.cached.Step),
			micros(r.sonic.Step), micros(r.validJSON.Step), ratio(r.peer.Step, r.ours.Step), ratio(r.ours.Step, r.sonic.Step),
			ratio(r.ours.Step, r.validJSON.Step), r.ours.Bytes, r.peer.Bytes, small)
	}
}

func printMeans(w io.Writer, rows []row) {
	var peer, cached, sonic, withoutSame []float64
	slowest, worst := 1e9, 0.0
	for _, r := range rows {
		if r.stream.Hostile {
			slowest = min(slowest, ratio(r.peer.Step, r.ours.Step))
			worst = max(worst, ratio(r.ours.Step, r.validJSON.Step))
			continue
		}
		peer = append(peer, ratio(r.peer.Step, r.ours.Step))
		cached = append(cached, ratio(r.cached.Step, r.ours.Step))
		sonic = append(sonic, ratio(r.ours.Step, r.sonic.Step))
		if r.stream.Name != "identical documents" {
			withoutSame = append(withoutSame, ratio(r.ours.Step, r.sonic.Step))
		}
	}
	fmt.Fprintln(w)
	if len(peer) > 0 {
		fmt.Fprintf(w, "Everyday streams, geometric means: wI2L ÷ freshet %.1f (with its previous document decoded %.1f); freshet ÷ sonic Valid %.2f (without identical documents %.2f).\n",
			diff.GeoMean(peer), diff.GeoMean(cached), diff.GeoMean(sonic), diff.GeoMean(withoutSame))
	}
	if worst > 0 {
		fmt.Fprintf(w, "Hostile streams, the worst: wI2L ÷ freshet %.1f; freshet ÷ encoding/json Valid %.1f.\n", slowest, worst)
	}
}
