package main

import (
	"fmt"
	"math"
)

// figure is one promise and whether this run kept it.
type figure struct {
	Text   string  `json:"text"`
	Value  float64 `json:"value"`
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most"` // or at least
	Unit   string  `json:"unit"`
	Met    bool    `json:"met"`
	Beside string  `json:"beside,omitempty"` // what it was compared with
}

const (
	ours           = "Freshet"
	limitOfFigures = "limit, waiting"
	limitOfBeats   = "limit, beats"
)

// peers are the products that Freshet is compared with; the best of them counts.
var peers = []string{"Nchan", "net/http", "Pushpin"}

// figures judges what was measured; what was not is left out.
func (r *report) figures() []figure {
	j := judge{r: r}
	for _, f := range []struct {
		id    string
		bound float64
	}{{"sat1k", 0.4}, {"sat10k", 0.8}, {"fixed", 0.6}, {"large", 0.35}} {
		j.againstPeers(f.id, cpuPerMillion, "CPU per delivery", f.bound)
	}
	for _, id := range []string{"sat1k", "sat10k", "large"} {
		j.against(id, cpuPerMillion, "CPU per delivery", limitOfFigures, 1.25)
	}
	j.againstPeers("fixed", p99ms, "latency p99", 1)
	j.againstPeers("sat1k", p50ms, "latency p50", 0.5)
	j.againstPeers("sat10k", p50ms, "latency p50", 0.5)
	j.atLeast("connects", connectsPerS, "connects per second", "Nchan", 1)
	j.absolute("compress", compressRatio, "CPU with compression over without", 1.3, "×")
	j.absolute("idle", rssPerConn, "memory of an idle subscriber", 1, "KB")
	j.idleFleet()
	j.absolute("slow", slowRSSGrowthMB, "memory that one slow reader costs", 1, "MB")
	j.absolute("slow", slowP99Ratio, "the others' p99 with a slow reader over without", 1.1, "×")
	if v, ok := r.get("slow", ours, slowEndedRight); ok {
		j.add(figure{Text: "the slow reader ends with the right document", Value: v, Bound: 1, Unit: "(1 is yes)"})
	}
	return j.all
}

type judge struct {
	r   *report
	all []figure
}

func (j *judge) add(f figure) {
	f.Met = f.Value >= f.Bound
	if f.AtMost {
		f.Met = f.Value <= f.Bound
	}
	j.all = append(j.all, f)
}

func (j *judge) title(id string) string { return j.r.outcome(id, id).Title }

// againstPeers compares with the peer that has the smallest value.
func (j *judge) againstPeers(id, metric, what string, bound float64) {
	best, name := math.Inf(1), ""
	for _, p := range peers {
		if v, ok := j.r.get(id, p, metric); ok && v < best {
			best, name = v, p
		}
	}
	if name != "" {
		j.against(id, metric, what, name, bound)
	}
}

func (j *judge) against(id, metric, what, name string, bound float64) {
	mine, ok1 := j.r.get(id, ours, metric)
	theirs, ok2 := j.r.get(id, name, metric)
	if ok1 && ok2 && theirs > 0 {
		j.add(figure{Text: j.title(id) + ": " + what, Value: mine / theirs, Bound: bound, AtMost: true, Unit: "×",
			Beside: fmt.Sprintf("%s: %.3g against %.3g", name, mine, theirs)})
	}
}

func (j *judge) atLeast(id, metric, what, name string, bound float64) {
	mine, ok1 := j.r.get(id, ours, metric)
	theirs, ok2 := j.r.get(id, name, metric)
	if ok1 && ok2 && theirs > 0 {
		j.add(figure{Text: what, Value: mine / theirs, Bound: bound, Unit: "×", Beside: fmt.Sprintf("%s: %.0f against %.0f", name, mine, theirs)})
	}
}

func (j *judge) absolute(id, metric, what string, bound float64, unit string) {
	if v, ok := j.r.get(id, ours, metric); ok {
		j.add(figure{Text: what, Value: v, Bound: bound, AtMost: true, Unit: unit})
	}
}

// idleFleet judges 100,000 idle subscribers; where fewer were possible, what they took is scaled up, and the text says so.
func (j *judge) idleFleet() {
	n, ok := j.r.get("idle", ours, connections)
	if !ok || n == 0 {
		return
	}
	rss, _ := j.r.get("idle", ours, rssTotalMB)
	perConn, _ := j.r.get("idle", ours, rssPerConn)
	how := ""
	if n < idleFleet {
		rss += (idleFleet - n) * perConn / 1024
		how = fmt.Sprintf(", scaled up from %.0f", n)
	}
	j.add(figure{Text: "100,000 idle subscribers: memory" + how, Value: rss, Bound: 250, AtMost: true, Unit: "MB"})
	cpu, _ := j.idleCPU(ours)
	f := figure{Text: "100,000 idle subscribers: CPU" + how, Value: cpu, Bound: 5, AtMost: true, Unit: "% of a core"}
	if floor, ok := j.idleCPU(limitOfBeats); ok {
		f.Beside = fmt.Sprintf("%s: %.3g", limitOfBeats, floor)
	}
	j.add(f)
}

const idleFleet = 100_000

// idleCPU is what idleFleet idle subscribers cost, or would.
func (j *judge) idleCPU(name string) (percent float64, ok bool) {
	n, ok := j.r.get("idle", name, connections)
	if !ok || n == 0 {
		return 0, false
	}
	cpu, _ := j.r.get("idle", name, idleCPUPercent)
	if n < idleFleet {
		base, _ := j.r.get("idle", name, fewCPUPercent)
		cpu = base + (cpu-base)*idleFleet/n
	}
	return cpu, true
}
