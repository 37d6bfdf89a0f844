package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// recorded is a stage that notes what happens to it.
func recorded(events *[]string, name string, startErr, stopErr error) stage {
	return stage{
		name:  name,
		start: func(context.Context) error { *events = append(*events, "start "+name); return startErr },
		stop:  func(context.Context) error { *events = append(*events, "stop "+name); return stopErr },
	}
}

func TestStagesStopInReverse(t *testing.T) {
	var events []string
	s := &stages{all: []stage{recorded(&events, "a", nil, nil), {name: "nothing to do"}, recorded(&events, "b", nil, nil)}}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(quiet); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"start a", "start b", "stop b", "stop a"}, events); diff != "" {
		t.Error(diff)
	}
}

func TestAStageThatFailsToStartUndoesThoseBeforeIt(t *testing.T) {
	var events []string
	broken := errors.New("broken")
	s := &stages{all: []stage{recorded(&events, "a", nil, nil), recorded(&events, "b", broken, nil), recorded(&events, "c", nil, nil)}}
	if err := s.start(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_ = s.stop(quiet)
	if diff := cmp.Diff([]string{"start a", "start b", "stop a"}, events); diff != "" {
		t.Error(diff)
	}
}

func TestAStageThatFailsToStopDoesNotKeepTheOthersRunning(t *testing.T) {
	var events []string
	broken := errors.New("broken")
	s := &stages{all: []stage{recorded(&events, "a", nil, nil), recorded(&events, "b", nil, broken)}}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(quiet); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"start a", "start b", "stop b", "stop a"}, events); diff != "" {
		t.Error(diff)
	}
}

func TestASlowDrainLeavesTheRestTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		s := &stages{started: 2, all: []stage{
			{name: "store", stop: func(ctx context.Context) error {
				deadline, _ := ctx.Deadline()
				left = time.Until(deadline)
				return nil
			}},
			{name: "drain", patience: time.Minute, stop: func(ctx context.Context) error { <-ctx.Done(); return nil }},
		}}
		begin := time.Now()
		_ = s.stop(quiet)
		if took := time.Since(begin); took != time.Minute || left != stopPatience {
			t.Errorf("the drain took %s and left %s", took, left)
		}
	})
}
