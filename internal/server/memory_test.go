package server

import (
	"testing"
	"testing/fstest"
)

func TestDocumentsGetAQuarterOfWhatTheProcessMayUse(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemTotal:       2097152 kB\nMemFree: 1 kB\n")
	for _, test := range []struct {
		name   string
		files  fstest.MapFS
		chosen int64
		want   int64
	}{
		{"nothing is known", fstest.MapFS{}, 0, 0},
		{"the machine's", fstest.MapFS{"proc/meminfo": meminfo}, 0, 512 << 20},
		{"the control group's", fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max": file("1073741824\n")}, 0, 256 << 20},
		{"a control group with more than the machine", fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a\n"),
			"sys/fs/cgroup/a/memory.max": file("1099511627776\n")}, 0, 512 << 20},
		{"the operator's choice", fstest.MapFS{"proc/meminfo": meminfo}, 1 << 20, 1 << 20},
	} {
		if got := newBudget(mayUse(test.files), test.chosen, 2).held.Most(); got != test.want {
			t.Errorf("%s: documents may hold %d bytes, want %d", test.name, got, test.want)
		}
	}
}

func TestLongComparisonsLeaveProcessorsToOthers(t *testing.T) {
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 1, 8: 4} {
		b := newBudget(1<<30, 0, processors)
		got := 0
		for b.work.TryAcquire(1) {
			got++
		}
		if got != want {
			t.Errorf("%d at once on %d processors, want %d", got, processors, want)
		}
	}
}
