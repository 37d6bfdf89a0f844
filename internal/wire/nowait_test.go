//go:build unix

package wire

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"time"
)

// pair returns the two ends of a connection, and the descriptor of the first.
func pair(t *testing.T) (fd int, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(s uintptr) { fd = int(s) }); err != nil {
		t.Fatal(err)
	}
	return fd, other
}

// soon repeats a call until it need not be tried again.
func soon(t *testing.T, call func() (int, syscall.Errno)) (int, syscall.Errno) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n, err := call(); err != syscall.EAGAIN {
			return n, err
		}
	}
	t.Fatal("nothing comes")
	return 0, 0
}

func TestReadNow(t *testing.T) {
	fd, other := pair(t)
	p := make([]byte, 8)
	if n, err := ReadNow(fd, p); n != 0 || err != syscall.EAGAIN {
		t.Fatalf("silence is %d, %v", n, err)
	}
	if _, err := other.Write([]byte("freshet")); err != nil {
		t.Fatal(err)
	}
	if n, err := soon(t, func() (int, syscall.Errno) { return ReadNow(fd, p) }); err != 0 || string(p[:n]) != "freshet" {
		t.Fatalf("got %q, %v", p[:n], err)
	}
	other.Close()
	if n, err := soon(t, func() (int, syscall.Errno) { return ReadNow(fd, p) }); n != 0 || err != 0 {
		t.Fatalf("the end is %d, %v", n, err)
	}
}

func TestWriteNow(t *testing.T) {
	fd, other := pair(t)
	frame := bytes.Repeat([]byte("freshet "), 8<<10)
	sent := 0
	for {
		n, err := WriteNow(fd, frame[sent%8:])
		if err == syscall.EAGAIN {
			break
		}
		if err != 0 || n == 0 {
			t.Fatalf("wrote %d, %v", n, err)
		}
		sent += n
	}
	if sent < len(frame) {
		t.Fatalf("only %d bytes fit into a socket", sent)
	}
	got := make([]byte, sent)
	_ = other.SetReadDeadline(time.Now().Add(time.Minute))
	for n := 0; n < sent; {
		m, err := other.Read(got[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	if want := bytes.Repeat([]byte("freshet "), sent/8+1)[:sent]; !bytes.Equal(got, want) {
		t.Fatal("what arrived is not what was sent")
	}
	_ = other.(*net.TCPConn).SetLinger(0)
	other.Close()
	// The first one may still be taken. A signal would end the test.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := WriteNow(fd, frame); err == syscall.EPIPE || err == syscall.ECONNRESET {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a broken connection takes everything")
		}
	}
}

// hasInput reports whether there is something to be read.
func hasInput(t *testing.T, fd uintptr) bool {
	t.Helper()
	_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
	return err != syscall.EAGAIN
}
