package httpkit

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testClerk does what the path of a request says.
type testClerk struct {
	conn   *DeskConn
	closed *atomic.Int64
}

func (k *testClerk) Take(read []byte) (Turn, error) {
	path, _, _ := strings.Cut(strings.TrimPrefix(string(read), "GET "), " ")
	switch path {
	case "/taken":
		return Taken, k.conn.Answer([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclerk"))
	case "/long":
		body := longAnswer()
		return Taken, k.conn.Answer(append([]byte("HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...))
	case "/lent":
		return Lent, nil
	case "/left":
		k.conn.Leave(closeCounter{k.closed})
		return Lent, nil
	}
	return Declined, nil
}

// longAnswer does not fit into a socket at once.
func longAnswer() string { return strings.Repeat("clerk", 8<<20/5) }

type closeCounter struct{ n *atomic.Int64 }

func (c closeCounter) Close() error { c.n.Add(1); return nil }

// deskTest is a server with a desk.
type deskTest struct {
	t      *testing.T
	desk   *Desk
	conn   net.Conn
	in     *bufio.Reader
	closed atomic.Int64 // of what was left
	picked atomic.Int64
}

func startDesk(t *testing.T) *deskTest {
	dt := &deskTest{t: t}
	dt.desk = NewDesk(Patience{Head: time.Minute, Idle: time.Minute}, func(c *DeskConn) Clerk { return &testClerk{c, &dt.closed} })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ConnState: ConnState, ConnContext: ConnContext, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "pick" || r.URL.Path == "/left" && r.Header.Get("Pick") != "" {
				if Left(r.Context()) != nil {
					dt.picked.Add(1)
				}
			}
			_, _ = io.WriteString(w, "library")
		})}
	go func() { _ = s.Serve(RefuseAmbiguous(dt.desk.Listen(Calm(l)))) }()
	t.Cleanup(func() { s.Close() })
	if dt.conn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dt.conn.Close() })
	_ = dt.conn.SetDeadline(time.Now().Add(time.Minute))
	dt.in = bufio.NewReader(dt.conn)
	return dt
}

// get returns who answers.
func (dt *deskTest) get(path string, fields ...string) string {
	dt.t.Helper()
	if _, err := io.WriteString(dt.conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+strings.Join(append(fields, ""), "\r\n")+"\r\n"); err != nil {
		dt.t.Fatal(err)
	}
	resp, err := http.ReadResponse(dt.in, nil)
	if err != nil {
		dt.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		dt.t.Fatal(err)
	}
	return string(body)
}

func TestWhatIsLentComesBack(t *testing.T) {
	dt := startDesk(t)
	for _, c := range [][2]string{
		{"/taken", "clerk"}, {"/lent", "library"}, {"/taken", "clerk"}, {"/lent", "library"}, {"/lent", "library"}, {"/taken", "clerk"},
		{"/other", "library"}, {"/taken", "library"}, {"/lent", "library"}, {"/taken", "library"}, // for good
	} {
		if who := dt.get(c[0]); who != c[1] {
			t.Fatalf("%s is answered by the %s, want the %s", c[0], who, c[1])
		}
	}
}

// An answer for which the socket has no room waits for its reader, and the next request for the answer.
func TestALongAnswerArrivesWhole(t *testing.T) {
	dt := startDesk(t)
	for range 2 {
		if body := dt.get("/long"); body != longAnswer() {
			t.Fatalf("%d bytes arrived", len(body))
		}
		if who := dt.get("/taken"); who != "clerk" {
			t.Fatalf("answered by the %s", who)
		}
	}
}

// What a clerk leaves is for the next request alone.
func TestWhatIsLeftIsPickedUpOrClosed(t *testing.T) {
	dt := startDesk(t)
	dt.get("/left", "Pick: yes")
	if dt.picked.Load() != 1 || dt.closed.Load() != 0 {
		t.Fatalf("%d picked up, %d closed", dt.picked.Load(), dt.closed.Load())
	}
	dt.get("/left")
	dt.get("/lent?pick")
	if dt.picked.Load() != 1 || dt.closed.Load() != 1 {
		t.Fatalf("%d picked up, %d closed", dt.picked.Load(), dt.closed.Load())
	}
	if Left(t.Context()) != nil {
		t.Error("something is left without a desk")
	}
}

// A desk that closes ends the connections that it answered, and does not hold up those that are the library's.
func TestAClosedDeskLendsEverything(t *testing.T) {
	dt := startDesk(t)
	lent := startDesk(t)
	dt.get("/taken")
	lent.get("/other")
	for _, d := range []*deskTest{dt, lent} {
		if err := d.desk.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := dt.in.ReadByte(); err != io.EOF {
		t.Errorf("who was answered at the desk gets %v, %v", b, err)
	}
	if who := lent.get("/taken"); who != "library" {
		t.Errorf("answered by the %s", who)
	}
}
