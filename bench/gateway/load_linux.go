package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var finished = regexp.MustCompile(`(\d+) requests in`)

// load runs the load generator and returns how many requests were answered, all of them with 2xx.
func (b *bench) load(ctx context.Context, c *contender, length time.Duration) (int64, error) {
	args := []string{"-t", "2", "-c", strconv.Itoa(b.connections), "-d", fmt.Sprintf("%ds", int(length.Seconds()))}
	if c.key != "" {
		args = append(args, "-H", "apikey: "+c.key)
	}
	out, err := exec.CommandContext(ctx, "wrk", append(args, c.url)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if text := string(out); strings.Contains(text, "Non-2xx") || strings.Contains(text, "Socket errors") {
		return 0, fmt.Errorf("not every request was answered well:\n%s", text)
	}
	found := finished.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("wrk said something unknown:\n%s", out)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// need makes sure that a program is there, by installing it where that is possible.
func need(command, debian string) error {
	if _, err := exec.LookPath(command); err == nil {
		return nil
	}
	if text, err := exec.Command("apt-get", "install", "-y", "--no-install-recommends", debian).CombinedOutput(); err != nil {
		return fmt.Errorf("%s is missing and could not be installed (Debian package %s): %w: %s", command, debian, err, text)
	}
	_, err := exec.LookPath(command)
	return err
}
