package loglimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFloodIsCountedAndNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&out, nil)), "refusals", 20)
		lines := func(text string) int { return strings.Count(out.String(), text) }
		for i := range 20 {
			l.Log(slog.LevelInfo, "refused", "n", i)
		}
		if lines("msg=refused") != 20 || lines("left out") != 0 {
			t.Errorf("what is allowed: %s", out.String())
		}
		time.Sleep(500 * time.Millisecond)
		for range 1000 {
			l.Log(slog.LevelInfo, "refused", "n", "many")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if lines("msg=refused") != 20 || lines(`msg="log lines left out" about=refusals count=1000`) != 1 {
			t.Errorf("a flood: %s", out.String())
		}
		l.Log(slog.LevelWarn, "refused", "n", "later")
		time.Sleep(time.Hour)
		if lines("n=later") != 1 || lines("left out") != 1 {
			t.Errorf("after the flood: %s", out.String())
		}
	})
}

func TestTheCountIsWrittenAtTheEnd(t *testing.T) {
	var out bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&out, nil)), "refusals", 0)
	l.Log(slog.LevelInfo, "refused")
	l.Close()
	l.Close()
	if strings.Count(out.String(), "count=1") != 1 || strings.Contains(out.String(), "msg=refused") {
		t.Error(out.String())
	}
}

func TestLinesThatNobodyWantsAreNotCounted(t *testing.T) {
	var out bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&out, nil)), "refusals", 0)
	l.Log(slog.LevelDebug, "refused")
	l.Close()
	if out.Len() > 0 {
		t.Error(out.String())
	}
}

func TestEveryLineOfManyWritersIsWrittenOrCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&out, nil)), "refusals", 7)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 10 {
					l.Log(slog.LevelInfo, "refused")
					time.Sleep(130 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		total := strings.Count(out.String(), "msg=refused")
		for line := range strings.Lines(out.String()) {
			if _, count, ok := strings.Cut(line, "count="); ok {
				var n int
				if _, err := fmt.Sscan(count, &n); err != nil {
					t.Fatal(err)
				}
				total += n
			}
		}
		if total != 500 {
			t.Errorf("%d lines of 500:\n%s", total, out.String())
		}
	})
}
