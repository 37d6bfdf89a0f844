package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func mustPlan(t *testing.T, change func(*input)) estimate {
	t.Helper()
	in := defaults()
	change(&in)
	a, err := in.plan()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }

// TestASmallCaseByHand does the arithmetic of docs/scaling.md once with a pencil.
func TestASmallCaseByHand(t *testing.T) {
	a := mustPlan(t, func(in *input) {
		in.Load = load{
			Subscribers: 1000, Topics: 1, ChangesPerMinute: 60, DocumentBytes: 1000, PatchBytes: 100, Compression: 1,
			Heartbeat: 10 * time.Second, Session: 100 * time.Second, Storm: 10 * time.Second, Regions: 1,
		}
	})
	if a.DeliveriesPerSecond != 1000 || a.PublicationsPerSecond != 1 || a.ConnectsPerSecond != 10 || !near(a.HeartbeatsPerSecond, 100*math.Exp(-10)) {
		t.Errorf("rates: %+v", a)
	}
	if a.SubscriberNodes != 2 || a.PerNode != 500 || a.APINodes != 2 || a.NATSStreams != 1 {
		t.Errorf("nodes: %+v", a)
	}
	// Half of 1,000 deliveries and 10 connects, and the one topic: 500 × 10 µs + 5 × 64 µs + 1 × 37 µs, and a trace of heartbeats.
	if want := 0.005 + 0.00032 + 0.000037; math.Abs(a.NodeCores-want) > 1e-6 {
		t.Errorf("%v cores, want %v", a.NodeCores, want)
	}
	bits := (1000*(100+60+66) + 10*(1000+400+66)) * 8.0
	if math.Abs(a.EgressGbps-bits/1e9) > 1e-6 {
		t.Errorf("%v Gbit/s, want %v", a.EgressGbps, bits/1e9)
	}
}

func TestTenMillionFitOnTwentyNodesOfHalfAMillion(t *testing.T) {
	a := mustPlan(t, func(*input) {})
	if a.SubscriberNodes != 21 || a.PerNode > 500_000 || a.NodeCores > 8 || a.NodeMemoryGB > 16 || a.NodeGbps > 5 {
		t.Errorf("got %+v", a)
	}
}

func TestTheScarcestResourceDecides(t *testing.T) {
	for resource, change := range map[string]func(*input){
		"connections": func(in *input) { in.Machine.Connections = 1000 },
		"memory":      func(in *input) { in.Machine.MemoryGB = 16 },
		"CPU":         func(in *input) { in.Machine.Cores = 2 },
		"network":     func(in *input) { in.Machine.NetworkGbps = 0.1 },
	} {
		a := mustPlan(t, change)
		most := bound{}
		for _, b := range a.Bounds {
			if b.Nodes > most.Nodes {
				most = b
			}
		}
		if most.Resource != resource || a.SubscriberNodes < most.Nodes+1 {
			t.Errorf("%s decides instead of %s: %+v", most.Resource, resource, a.Bounds)
		}
	}
}

func TestMoreToDoNeverNeedsFewerNodes(t *testing.T) {
	for name, grow := range map[string]func(in *input, by float64){
		"subscribers": func(in *input, by float64) { in.Load.Subscribers *= by },
		"changes":     func(in *input, by float64) { in.Load.ChangesPerMinute *= by },
		"patches":     func(in *input, by float64) { in.Load.PatchBytes *= by },
		"documents":   func(in *input, by float64) { in.Load.DocumentBytes *= by },
		"cost":        func(in *input, by float64) { in.Figures.WriteMicros *= by },
	} {
		last := 0.0
		for _, by := range []float64{0.1, 0.5, 1, 2, 4} {
			a := mustPlan(t, func(in *input) { in.Load.Topics = 10_000; grow(in, by) })
			if a.SubscriberNodes < last {
				t.Errorf("%s × %v: %v nodes after %v", name, by, a.SubscriberNodes, last)
			}
			last = a.SubscriberNodes
		}
	}
}

func TestEveryNodeKeepsItsHeadroom(t *testing.T) {
	for _, changes := range []float64{0, 1, 30, 120} {
		in := defaults()
		in.Load.ChangesPerMinute = changes
		in.Load.Topics = 1000
		a, err := in.plan()
		if err != nil {
			t.Fatal(err)
		}
		if free := 1 - in.Machine.Headroom; a.NodeCores > in.Machine.Cores*free || a.NodeMemoryGB > in.Machine.MemoryGB*free || a.NodeGbps > in.Machine.NetworkGbps*free {
			t.Errorf("%v changes: %+v", changes, a)
		}
	}
}

func TestRegionsShareTheSubscribersNotTheTopics(t *testing.T) {
	one := mustPlan(t, func(*input) {})
	four := mustPlan(t, func(in *input) { in.Load.Regions = 4 })
	if four.SubscriberNodes*4 < one.SubscriberNodes || four.SubscriberNodes >= one.SubscriberNodes {
		t.Errorf("%v nodes in one region, %v in each of four", one.SubscriberNodes, four.SubscriberNodes)
	}
	if near(one.NATSGbps/one.SubscriberNodes, 0) || four.NATSGbps/four.SubscriberNodes < one.NATSGbps/one.SubscriberNodes*0.9 {
		t.Errorf("a node follows less in a region of four: %v, %v", one.NATSGbps, four.NATSGbps)
	}
}

func TestWhatNoNumberOfNodesCanCarryIsSaid(t *testing.T) {
	in := defaults()
	in.Load.Topics, in.Load.ChangesPerMinute, in.Machine.Cores = 1, 6e8, 1
	if _, err := in.plan(); err == nil || !strings.Contains(err.Error(), "no number of such nodes suffices") {
		t.Errorf("got %v", err)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, args := range []string{"-subscribers=0", "-subscribers=-5", "-subscribers=NaN", "-subscribers=Inf", "-topics=0", "-heartbeat=0s", "-headroom=1", "-headroom=-1", "-compression=0.5", "-regions=0", "-cores=x"} {
		if err := run([]string{args}, &bytes.Buffer{}); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}

func TestThePlanIsPrintedForPeopleAndPrograms(t *testing.T) {
	var text, object bytes.Buffer
	if err := run([]string{"-subscribers=2000000"}, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2,000,000 subscribers of 100,000 topics", "subscriber nodes           5 per region", "Gbit/s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	if err := run([]string{"-json"}, &object); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Plan struct{ SubscriberNodes float64 }
	}
	if err := json.Unmarshal(object.Bytes(), &read); err != nil || read.Plan.SubscriberNodes != 21 {
		t.Errorf("%v, %+v", err, read)
	}
}
