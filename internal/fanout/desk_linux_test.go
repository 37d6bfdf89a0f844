package fanout

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet/internal/plain"
)

// deskTest is a handler that begins streams at the desk, under paths that say how.
type deskTest struct {
	*frontTest
	group *Group
	left  atomic.Int64
	held  chan struct{} // closed to let those go who wait
	begun atomic.Int64
}

func (dt *deskTest) BeginNow(h *plain.Head) (Stream, bool) {
	switch h.Target {
	case "/held":
		<-dt.held
		return Stream{}, false
	case "/panics":
		panic("a mistake at the desk")
	case "/now":
		dt.begun.Add(1)
		return Stream{Group: dt.group, Header: NewHeader(http.Header{}), First: Batch{Bytes: []byte("first\n"), Events: 1, Next: 1}}, true
	}
	return Stream{}, false
}

func startDesk(t *testing.T, limit *AddressLimit) *deskTest {
	dt := &deskTest{held: make(chan struct{})}
	startWith(t, limit, func(ft *frontTest) FrontHandler {
		dt.frontTest = ft
		dt.group = ft.fan.NewGroup(silentFeed{}, false, func() { dt.left.Add(1) })
		return dt
	})
	t.Cleanup(dt.group.Close)
	return dt
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

func TestAStreamBegunAtTheDeskNeedsNobodyElse(t *testing.T) {
	dt := startDesk(t, NewAddressLimit(3, nil))
	var all []net.Conn
	for range 3 {
		c := dt.talk(request("/now"))
		served(t, c)
		all = append(all, c)
	}
	// What was written is counted a moment after the client has it.
	eventually(t, func() bool { return dt.fan.Stats().Events == 3 })
	if dt.begun.Load() != 3 || dt.fronted() != 0 || dt.passedOn() != 0 || dt.fan.Stats().Open != 3 {
		t.Errorf("%d at the desk, %d by goroutines, %d by net/http; %+v", dt.begun.Load(), dt.fronted(), dt.passedOn(), dt.fan.Stats())
	}
	if _, err := dt.talk(request("/now")).Read(make([]byte, 1)); err == nil {
		t.Error("one more than the address may have was served")
	}
	for _, c := range all {
		c.Close()
	}
	eventually(t, func() bool { return dt.left.Load() == 3 && dt.fan.Stats().Open == 0 })
	eventually(t, func() bool { // its permit is free again
		c := dt.talk(request("/now"))
		_, err := c.Read(make([]byte, 1))
		return err == nil
	})
}

func TestWhatADeskCannotBeginIsAnsweredAsBefore(t *testing.T) {
	dt := startDesk(t, nil)
	for name, pieces := range map[string][]string{
		"not now":             {request("/other")},
		"a mistake":           {request("/panics")},
		"in pieces":           {"GET /no", "w HTTP/1.0\r\n\r\n"},
		"an escape":           {request("/n%6fw")},
		"something behind it": {request("/now?")[:len(request("/now?"))-2] + "Connection: close\r\n\r\n" + "more"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, body := dt.answer(dt.talk(pieces...)); status != http.StatusTeapot || !strings.HasPrefix(body, "GET /") {
				t.Errorf("%d %q", status, body)
			}
		})
	}
	if !strings.Contains(dt.logged(), "a mistake at the desk") {
		t.Errorf("the log does not tell: %s", dt.logged())
	}
}

// TestADeskThatWaitsHoldsUpNobodyElse: nor do clients that say nothing.
func TestADeskThatWaitsHoldsUpNobodyElse(t *testing.T) {
	dt := startDesk(t, nil)
	waiting := dt.talk(request("/held"))
	for range 20 {
		dt.talk() // says nothing
		served(t, dt.talk(request("/now")))
	}
	close(dt.held)
	if status, _, _ := dt.answer(waiting); status != http.StatusTeapot {
		t.Errorf("the one that waited was answered %d", status)
	}
}

func TestAClosedFrontHasNoDesks(t *testing.T) {
	dt := startDesk(t, nil)
	c := dt.talk(request("/now"))
	served(t, c)
	dt.ln.Close()
	if late, err := net.Dial("tcp", dt.ln.Addr().String()); err == nil {
		late.Close()
		t.Error("the port is still open")
	}
	if dt.fan.Stats().Open != 1 {
		t.Error("the stream ended with the listener")
	}
	dt.fan.Close()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
	if dt.left.Load() != 1 {
		t.Errorf("%d left", dt.left.Load())
	}
}
