// Command poll measures what polling costs: one process polls many targets at a fixed interval, against an origin in
// another process that answers 304, and prints the cores it used, how late its polls were, and the memory of a topic.
//
//	go run ./poll
//
// The origin is as cheap as it can be, since it may share the processors with what is measured; its own use is printed too.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

type options struct {
	targets int
	hosts   int
	every   time.Duration
	warmUp  time.Duration
	window  time.Duration
	profile string
}

func main() {
	var o options
	var origin bool
	flag.IntVar(&o.targets, "targets", 20_000, "topics that are polled")
	flag.IntVar(&o.hosts, "hosts", 1, "hosts that they are on, each with connections of its own")
	flag.DurationVar(&o.every, "every", 2*time.Second, "how often each is")
	flag.DurationVar(&o.warmUp, "warm-up", 6*time.Second, "how long before it is measured")
	flag.DurationVar(&o.window, "window", 20*time.Second, "how long it is measured")
	flag.StringVar(&o.profile, "profile", "", "file for a CPU profile of the window")
	flag.BoolVar(&origin, "origin", false, "only be the origin")
	flag.Parse()
	run := func() error { return measure(o) }
	if origin {
		run = serveOrigin
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "poll:", err)
		os.Exit(1)
	}
}

// startOrigin runs the origin in a process of its own and returns its port.
func startOrigin() (port string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-origin")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the origin ends with us, however that happens
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), func() {
		_ = in.Close()
		_ = cmd.Wait()
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		fmt.Printf("origin (outside the budget)   %.1f s of processor time in all\n", used.Seconds())
	}, err
}
