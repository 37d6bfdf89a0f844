package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// server is a running freshet.
type server struct {
	cmd                 *exec.Cmd
	gateway, subscriber string
}

func startServer(binary, dir string) (*server, error) {
	s := &server{cmd: exec.Command(binary, "serve", "--data", dir, "--gateway-listen", "127.0.0.1:0", "--subscriber-listen", "127.0.0.1:0",
		"--admin-listen", "127.0.0.1:0", "--log-format", "json")}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var line struct{ Msg, Gateway, Subscriber string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			s.gateway, s.subscriber = "http://"+line.Gateway, "http://"+line.Subscriber
			go drain(stderr, func(int) {})
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("the server did not become ready")
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// watching is freshet tail in a terminal.
type watching struct {
	cmd     *exec.Cmd
	outside *os.File
	drawn   atomic.Int64 // bytes
}

func startTail(binary, dir string, s *server, topic, key string) (*watching, error) {
	inside, outside, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	w := &watching{cmd: exec.Command(binary, "tail", topic, "--key", key, "--server", s.gateway, "--subscriber", s.subscriber), outside: outside}
	w.cmd.Env = []string{"HOME=" + dir, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = inside, inside, inside
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go drain(outside, func(n int) { w.drawn.Add(int64(n)) })
	return w, nil
}

func (w *watching) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	_ = w.outside.Close()
}

// openTerminal returns both ends of a pseudo-terminal of a usual size.
func openTerminal() (inside, outside *os.File, err error) {
	outside, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	conn, err := outside.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	number := 0
	controlled := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		if err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120}); err != nil {
			return
		}
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err := errors.Join(controlled, err); err != nil {
		return nil, nil, err
	}
	inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return inside, outside, err
}

const clockTick = 10 * time.Millisecond // of every Linux that Go runs on

// cpuTime is what a process has used of processors so far.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is short", pid)
	}
	var ticks int64
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
