package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

func (t *thread) index(s *subscriber) int {
	return int((uintptr(unsafe.Pointer(s)) - uintptr(unsafe.Pointer(&t.subscribers[0]))) / unsafe.Sizeof(*s))
}

// read takes what one socket has. The socket never blocks, so the scheduler need not hear of it.
func (t *thread) read(s *subscriber, now int64) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(s.fd), uintptr(unsafe.Pointer(&t.buf[0])), uintptr(len(t.buf)))
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return
	case errno != 0 || n == 0:
		t.ended(s, errno)
		return
	}
	t.local.Bytes += int64(n)
	s.body.feed(t.buf[:n], func(b []byte) { t.take(s, b, now) })
	if s.state == waiting && s.body.phase != inHeader {
		t.begin(s)
	}
	if s.body.phase == broken {
		t.fail(fmt.Errorf("unreadable answer: %.200q", t.buf[:n]))
		t.drop(s)
	}
}

func (t *thread) begin(s *subscriber) {
	if s.body.status != 200 {
		t.again(s, fmt.Errorf("answered with status %d", s.body.status))
		return
	}
	t.opening--
	s.state = streaming
	t.local.Ready++
}

func (t *thread) ended(s *subscriber, errno syscall.Errno) {
	if !t.fleet.open.Load() {
		t.again(s, fmt.Errorf("closed by the server: %w", errno))
		return
	}
	t.local.Closed++
	t.drop(s)
}

func (t *thread) drop(s *subscriber) {
	if s.state != gone {
		syscall.Close(int(s.fd))
		s.state = gone
	}
}

// take looks at a run of body bytes.
func (t *thread) take(s *subscriber, b []byte, now int64) {
	if s.witness != nil {
		s.witness.gzip = s.body.gzip
		s.witness.feed(b)
	}
	if s.body.gzip {
		t.local.Events += int64(s.segment.count(b))
		return
	}
	t.local.Malformed += int64(s.scan.scan(b, func(m mark) { t.found(s, m, now) }))
}

func (t *thread) found(s *subscriber, m mark, now int64) {
	if m.publisher == finalPublisher {
		if m.seq > 0 && m.seq == t.fleet.final.Load() {
			t.local.Finals++
		}
		return
	}
	t.local.Events++
	p := m.publisher - '0'
	if p >= maxPublishers || m.seq <= s.last[p] {
		t.local.Disorder++
		return
	}
	s.last[p] = m.seq
	if w := t.fleet.window.Load(); w > 0 {
		t.latency[w-1].Add(time.Duration(now - m.at))
	}
}

func (t *thread) closeAll() {
	for i := range t.subscribers[:t.opened] {
		if s := &t.subscribers[i]; s.state != gone {
			_ = syscall.SetsockoptLinger(int(s.fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
			t.drop(s)
		}
	}
	syscall.Close(t.epoll)
}
