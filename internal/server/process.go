package server

import (
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// prepareProcess fits the process to the machine or container it runs in.
func prepareProcess(log *slog.Logger, root fs.FS) {
	if limit, ok := cgroupMemory(root); ok && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		// Leave the rest to what the Go heap does not count: mapped files, kernel buffers, stacks of the runtime.
		heap := limit / 100 * 85
		debug.SetMemoryLimit(heap)
		log.Info("memory limit set from the cgroup", "cgroup_bytes", limit, "limit_bytes", heap)
	}
	files, ok := maxOpenFiles()
	if !ok {
		return
	}
	makeRoomForFiles(min(files, manyFiles))
	if files < enoughFiles {
		log.Warn("few open files are allowed; each stream needs one. Raise it with ulimit -n, LimitNOFILE or --ulimit nofile",
			"allowed", files, "recommended", enoughFiles)
	}
}

// enoughFiles is room for ten thousand streams, which one small machine serves easily, and the rest of the process.
const enoughFiles = 16384

// manyFiles are made room for at once: half a megabyte of the kernel's memory.
const manyFiles = 65536

// cgroupMemory returns the tightest memory limit on the process: its own control group's or that of one above it.
func cgroupMemory(root fs.FS) (int64, bool) {
	raw, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	tightest := int64(math.MaxInt64)
	for line := range strings.Lines(string(raw)) {
		// "0::/path" in version 2, "9:memory:/path" in version 1.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[0] == "0" && fields[1] == "":
			tightest = min(tightest, tightestAbove(root, "sys/fs/cgroup", fields[2], "memory.max"))
		case fields[1] == "memory":
			tightest = min(tightest, tightestAbove(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes"))
		}
	}
	// Version 1 writes "no limit" as a number close to the largest.
	return tightest, tightest < 1<<60
}

// tightestAbove reads the file in the group and in every group above it. Groups outside our view do not exist.
func tightestAbove(root fs.FS, mount, group, file string) int64 {
	tightest := int64(math.MaxInt64)
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		if raw, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && n > 0 {
				tightest = min(tightest, n)
			}
		}
		if dir == "/" {
			return tightest
		}
	}
}
