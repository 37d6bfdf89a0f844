package fanout

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet/internal/wire"
)

// nowTest is a handler that takes streams at once, under paths that say how.
type nowTest struct {
	*listenTest
	group   *Group
	left    atomic.Int64
	release chan struct{} // closed to let those go who wait
	taken   atomic.Int64
}

func (nt *nowTest) ServeBare(c *wire.BareConn, r *wire.Request) {
	switch r.Target {
	case "/waits":
		<-nt.release
		return
	case "/panics":
		panic("a mistake in the handler")
	case "/now":
		nt.taken.Add(1)
		nt.fan.Take(c, Stream{Group: nt.group, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte("first\n"), Events: 1, Next: 1}})
	default:
		nt.listenTest.ServeBare(c, r)
	}
}

func startNow(t *testing.T, limit *wire.AddressLimit) *nowTest {
	nt := &nowTest{release: make(chan struct{})}
	startWith(t, limit, func(lt *listenTest) wire.BareHandler {
		nt.listenTest = lt
		nt.group = lt.fan.NewGroup(silentFeed{}, false, func() { nt.left.Add(1) })
		return nt
	})
	t.Cleanup(nt.group.Close)
	return nt
}

// served reads to the first frame.
func served(t *testing.T, c net.Conn) {
	t.Helper()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "first\n" {
			return
		}
	}
}

func request(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

func TestAStreamThatIsTakenNeedsNobodyElse(t *testing.T) {
	nt := startNow(t, wire.NewAddressLimit(3, nil))
	var all []net.Conn
	for range 3 {
		c := nt.talk(request("/now"))
		served(t, c)
		all = append(all, c)
	}
	// What was written is counted a moment after the client has it.
	eventually(t, func() bool { return nt.fan.Stats().Events == 3 })
	if nt.taken.Load() != 3 || nt.takenOver() != 0 || nt.passedOn() != 0 || nt.fan.Stats().Open != 3 {
		t.Errorf("%d at once, %d by goroutines, %d by net/http; %+v", nt.taken.Load(), nt.takenOver(), nt.passedOn(), nt.fan.Stats())
	}
	if _, err := nt.talk(request("/now")).Read(make([]byte, 1)); err == nil {
		t.Error("one more than the address may have was served")
	}
	for _, c := range all {
		c.Close()
	}
	eventually(t, func() bool { return nt.left.Load() == 3 && nt.fan.Stats().Open == 0 })
	eventually(t, func() bool { // its permit is free again
		c := nt.talk(request("/now"))
		_, err := c.Read(make([]byte, 1))
		return err == nil
	})
}

func TestWhatIsNotTakenAtOnceIsAnsweredAsBefore(t *testing.T) {
	nt := startNow(t, nil)
	for name, pieces := range map[string][]string{
		"not now":             {request("/other")},
		"a mistake":           {request("/panics")},
		"in pieces":           {"GET /no", "w HTTP/1.0\r\n\r\n"},
		"an escape":           {request("/n%6fw")},
		"something behind it": {request("/now?")[:len(request("/now?"))-2] + "Connection: close\r\n\r\n" + "more"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, body := nt.answer(nt.talk(pieces...)); status != http.StatusTeapot || !strings.HasPrefix(body, "GET /") {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	if !strings.Contains(nt.logged(), "a mistake in the handler") {
		t.Errorf("the log does not tell: %s", nt.logged())
	}
}

// TestAHandlerThatWaitsHoldsUpNobodyElse: nor do clients that say nothing.
func TestAHandlerThatWaitsHoldsUpNobodyElse(t *testing.T) {
	nt := startNow(t, nil)
	waiting := nt.talk(request("/waits"))
	for range 20 {
		nt.talk() // says nothing
		served(t, nt.talk(request("/now")))
	}
	close(nt.release)
	if status, _, _ := nt.answer(waiting); status != http.StatusTeapot {
		t.Errorf("the one that waited was answered %d", status)
	}
}

func TestStreamsOutliveTheirListener(t *testing.T) {
	nt := startNow(t, nil)
	c := nt.talk(request("/now"))
	served(t, c)
	nt.ln.Close()
	if late, err := net.Dial("tcp", nt.ln.Addr().String()); err == nil {
		late.Close()
		t.Error("the port is still open")
	}
	if nt.fan.Stats().Open != 1 {
		t.Error("the stream ended with the listener")
	}
	nt.fan.Close()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
	if nt.left.Load() != 1 {
		t.Errorf("%d left", nt.left.Load())
	}
}
