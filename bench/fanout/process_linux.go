package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a server and everything it started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	log   tailBuffer
}

// startProcess runs a server in a process group of its own, so that an interrupt at the terminal reaches only the benchmark, which
// then ends the server itself.
func startProcess(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cores, err := serverCores()
	if err == nil && cores != nil {
		err = startOn(cores, p.cmd)
	} else if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its output
		close(p.ended)
	}()
	return p, nil
}

func (p *process) output() string { return p.log.String() }

// stopPatience is how long a server may take to end by itself.
const stopPatience = 2 * time.Second

// stop ends the server and everything it started.
func (p *process) stop() {
	pids, _ := p.tree() // nobody is left if it fails
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	for _, pid := range pids[min(1, len(pids)):] {
		if parent, err := parentOf(pid); err == nil && parent == 1 { // left behind, and still the same process
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// usage is what a server has used so far.
type usage struct {
	cpu time.Duration
	rss int64 // bytes, shared pages counted in every process
	pss int64 // bytes, shared pages divided among those who share them
}

// usage sums up the server's processes.
func (p *process) usage() (usage, error) {
	pids, err := p.tree()
	if err != nil {
		return usage{}, err
	}
	var u usage
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // ended meanwhile; its parent accounts for it
		}
		cpu, err := parseStat(stat)
		if err != nil {
			return u, err
		}
		u.cpu += cpu
		if rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
			u.rss += parseKB(rollup, "Rss:")
			u.pss += parseKB(rollup, "Pss:")
		}
	}
	return u, nil
}

// tree lists the server and all its descendants, the server first.
func (p *process) tree() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, err := parentOf(pid); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	select {
	case <-p.ended:
		return nil, errors.New("the server is gone: " + p.output())
	default:
	}
	all := []int{p.cmd.Process.Pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all, nil
}

func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseParent(stat)
}

// tailBuffer keeps the end of what a server prints.
type tailBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const maxTail = 16 << 10

func (t *tailBuffer) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - maxTail; over > 0 {
		t.buf.Next(over)
	}
	return len(b), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}

// raiseFiles lets this process and its children open as many files as the system allows, and returns how many.
func raiseFiles(want uint64) uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	if l.Max < want {
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want}) // needs privileges
	}
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	l.Cur = l.Max
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	// The kernel makes its table of files larger only now, and not while subscribers connect, who would wait for it.
	if fd, err := unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, int(l.Cur)-1); err == nil {
		_ = unix.Close(fd)
	}
	return l.Cur
}
