package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// statFields splits /proc/<pid>/stat behind the name, which stands in parentheses and may hold anything.
func statFields(stat []byte) ([]string, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) <= statChildrenSystem {
		return nil, fmt.Errorf("unreadable process state %.80q", stat)
	}
	return fields, nil
}

// Places of fields behind the name.
const (
	statParent         = 1
	statUser           = 11
	statChildrenSystem = 14
)

// parseStat returns the CPU time of a process and of its children that ended, from /proc/<pid>/stat.
func parseStat(stat []byte) (time.Duration, error) {
	fields, err := statFields(stat)
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, f := range fields[statUser : statChildrenSystem+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// parseParent returns the number of the parent process.
func parseParent(stat []byte) (int, error) {
	fields, err := statFields(stat)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[statParent])
}

// tick is the unit of CPU times in /proc; it is the same on every Linux that Go runs on.
const tick = time.Second / 100

// parseKB returns a line like "Rss:  123 kB" in bytes, or 0.
func parseKB(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

// socketMemory is what TCP sockets of the whole machine hold in the kernel, in bytes.
func socketMemory() int64 {
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	return parseSocketMemory(text) * int64(os.Getpagesize())
}

// parseSocketMemory returns the pages of the line "TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1".
func parseSocketMemory(text []byte) int64 {
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "TCP:") {
			continue
		}
		if _, after, ok := strings.Cut(line, " mem "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(after), 10, 64)
			return n
		}
	}
	return 0
}
