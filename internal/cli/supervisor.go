package cli

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"
)

// supervisor tells systemd how the service is (sd_notify): the socket is named in the environment, and messages are
// lines of NAME=value. Without systemd it says nothing. It is safe for concurrent use.
type supervisor struct {
	socket   string        // path, or @ and an abstract name; empty without systemd
	watchdog time.Duration // how often systemd wants to hear that the process is alive; 0 is never
}

func newSupervisor(p *process) supervisor {
	s := supervisor{socket: p.variable("NOTIFY_SOCKET")}
	if !strings.HasPrefix(s.socket, "/") && !strings.HasPrefix(s.socket, "@") {
		return supervisor{}
	}
	if µs, err := strconv.ParseInt(p.variable("WATCHDOG_USEC"), 10, 64); err == nil && µs > 0 {
		s.watchdog = time.Duration(µs) * time.Microsecond
	}
	return s
}

// say sends one state. Nobody could act on a failure: systemd notices by itself that it heard nothing.
func (s supervisor) say(state string) {
	if s.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}

// follow says READY when ready gives the address of the admin listener, STOPPING when ctx ends, and in between, and during the
// drain, that the process is alive as long as that listener says so. It returns when over closes.
func (s supervisor) follow(ctx context.Context, ready <-chan string, over <-chan struct{}) {
	admin := ""
	select {
	case admin = <-ready:
		s.say("READY=1\nSTATUS=Serving")
	case <-over:
		return
	}
	var beat <-chan time.Time
	if s.watchdog > 0 {
		ticker := time.NewTicker(s.watchdog / 3) // one lost beat is no reason to be killed
		defer ticker.Stop()
		beat = ticker.C
	}
	stopping := ctx.Done()
	for {
		select {
		case <-stopping:
			s.say("STOPPING=1\nSTATUS=Draining")
			stopping = nil
		case <-beat:
			s.beat(ctx, admin)
		case <-over:
			return
		}
	}
}

func (s supervisor) beat(ctx context.Context, admin string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.watchdog/3)
	defer cancel()
	if _, err := askHealth(ctx, admin, "/livez"); err == nil {
		s.say("WATCHDOG=1")
	}
}

// supervised runs what serves until ctx ends, and tells systemd about it. run calls ready at most once.
func (s supervisor) supervised(ctx context.Context, run func(ready func(admin string)) error) error {
	if s.socket == "" {
		return run(func(string) {})
	}
	ready, over, told := make(chan string, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		s.follow(ctx, ready, over)
	}()
	err := run(func(admin string) { ready <- admin })
	close(over)
	<-told
	return err
}
