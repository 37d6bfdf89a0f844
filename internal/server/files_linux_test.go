package server

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheTableOfFilesNeedNotGrowWhileACrowdArrives(t *testing.T) {
	allowed, ok := maxOpenFiles()
	if !ok {
		t.Fatal("no limit of open files")
	}
	prepareProcess(slog.New(slog.DiscardHandler), fstest.MapFS{})
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var size uint64
	for line := range strings.Lines(string(status)) {
		if after, found := strings.CutPrefix(line, "FDSize:"); found {
			size, err = strconv.ParseUint(strings.TrimSpace(after), 10, 64)
		}
	}
	if err != nil || size < min(allowed, manyFiles) {
		t.Errorf("room for %d files (%v), want %d of the %d that are allowed", size, err, manyFiles, allowed)
	}
}
