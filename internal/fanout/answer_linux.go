package fanout

import (
	"bytes"
	"net/http"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/wire"
)

// answer is what the handler of a plain request writes to: a stream, to which Serve hands the connection, or a short answer that
// ends it.
type answer struct {
	fd        int // -1 once an event loop has it
	permit    Permit
	addresses *AddressLimit
	header    http.Header
	status    int
	body      []byte
	complete  bool
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.fd < 0 {
		return 0, http.ErrHijacked
	}
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, p...)
	return len(p), nil
}

// take gives the connection away.
func (a *answer) take() int {
	fd := a.fd
	a.fd = -1
	return fd
}

// finish sends a short answer and closes the connection, if it is still ours. An answer that does not fit into an empty socket's
// buffer is cut; errors are a few hundred bytes.
func (a *answer) finish() {
	fd := a.take()
	if fd < 0 {
		return
	}
	if a.complete {
		_, _ = wire.WriteNow(fd, a.bytes())
	}
	unix.Close(fd)
	a.addresses.release(a.permit)
}

// bytes is the answer as it goes over the wire.
func (a *answer) bytes() []byte {
	a.WriteHeader(http.StatusOK)
	a.header.Set("Connection", "close")
	a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
	var out bytes.Buffer
	out.WriteString("HTTP/1.1 " + strconv.Itoa(a.status) + " " + http.StatusText(a.status) + "\r\n")
	_ = a.header.Write(&out) // a Buffer cannot fail
	out.WriteString("Date: ")
	out.Write(appendDate(out.AvailableBuffer()))
	out.WriteString("\r\n\r\n")
	out.Write(a.body)
	return out.Bytes()
}
