package wire

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Write writes what there is room for: a response that does not fit into the empty buffer of a socket is cut.
func (c *BareConn) Write(p []byte) (int, error) {
	n, errno := WriteNow(c.fd, p)
	switch {
	case errno != 0:
		return n, errno
	case n < len(p):
		return n, io.ErrShortWrite
	}
	return n, nil
}

// Close closes the connection unless it is somebody else's.
func (c *BareConn) Close() {
	if fd, permit := c.Detach(); fd >= 0 {
		unix.Close(fd)
		c.limit.Release(permit)
	}
}

// reset closes the connection without leaving anything of it to the kernel.
func (c *BareConn) reset() {
	_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	c.Close()
}

// netConn makes it a connection as others are. It is closed if that fails.
func (c *BareConn) netConn() (net.Conn, error) {
	fd, permit := c.Detach()
	file := os.NewFile(uintptr(fd), "")
	conn, err := net.FileConn(file) // with a descriptor of its own
	_ = file.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &limitedConn{TCPConn: tcp, permitHolder: permitHolder{limit: c.limit, permit: permit}}, nil
	}
	c.limit.Release(permit)
	if err == nil {
		_ = conn.Close()
		err = fmt.Errorf("wire: %T is no connection of TCP", conn)
	}
	return nil, err
}
