package server

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

func TestTheTightestCgroupLimitCounts(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"no control groups": {fstest.MapFS{}, 0},
		"version 2, in a container": {fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n"),
		}, 1 << 30},
		"version 2, no limit": {fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n"),
		}, 0},
		"version 2, a limit above": {fstest.MapFS{
			"proc/self/cgroup":                                      file("0::/system.slice/freshet.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":                 file("2000000000\n"),
			"sys/fs/cgroup/memory.max":                              file("max\n"),
			"sys/fs/cgroup/system.slice/freshet.service/memory.max": file("3000000000\n"),
		}, 2000000000},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("12:cpu,cpuacct:/docker/x\n9:memory:/docker/x\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("536870912\n"),
		}, 512 << 20},
		"version 1, no limit": {fstest.MapFS{
			"proc/self/cgroup": file("9:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 0},
		"nonsense": {fstest.MapFS{"proc/self/cgroup": file("x\n\n0::/../..\n"), "sys/fs/cgroup/memory.max": file("-5")}, 0},
	} {
		got, ok := cgroupMemory(c.root)
		if ok != (c.want != 0) || ok && got != c.want {
			t.Errorf("%s: %d %v, want %d", name, got, ok, c.want)
		}
	}
}

func TestLogLinesFollowTheSettings(t *testing.T) {
	for _, c := range []struct {
		format settings.LogFormat
		level  slog.Level
		want   string
	}{
		{settings.LogText, slog.LevelInfo, "level=INFO msg=tick every=1m30s secret=[hidden]\n"},
		{settings.LogJSON, slog.LevelInfo, `"level":"INFO","msg":"tick","every":"1m30s","secret":"[hidden]"}` + "\n"},
		{settings.LogJSON, slog.LevelWarn, ""},
	} {
		var b bytes.Buffer
		s := settings.Default()
		s.Log.Format, s.Log.Level = c.format, c.level
		NewLogger(&b, &s).InfoContext(context.Background(), "tick", "every", 90*time.Second, "secret", freshet.Secret("x"))
		if !strings.HasSuffix(b.String(), c.want) || c.want == "" && b.Len() > 0 {
			t.Errorf("%s from %s: %q", c.format, c.level, b.String())
		}
	}
}
