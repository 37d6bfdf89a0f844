//go:build !linux

package fanout

import (
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/freshet-io/freshet/internal/wire"
)

// Other systems have no event loop; every stream has a goroutine.
type (
	loops      struct{}
	loopGroups struct{}
)

func (f *Fanout) startLoops(Options) error                              { return nil }
func (f *Fanout) stopLoops()                                            {}
func (f *Fanout) drainLoops(time.Duration)                              {}
func (f *Fanout) adopt(http.ResponseWriter, *http.Request, Stream) bool { return false }
func (g *Group) initLoops(*Fanout)                                      {}
func (g *Group) wakeLoops()                                             {}

func (f *Fanout) loopConns(func(*Group) bool) []Conn { return nil }
func (f *Fanout) describeLoops([]Conn)               {}
func (f *Fanout) cutLoop(string, []byte) bool        { return false }

// A peer is nobody here who could be asked.
type peer struct{}

func newPeer(syscall.RawConn) *peer         { return nil }
func (p *peer) leave()                      {}
func (p *peer) look() (took, vanished bool) { return false, false }

func boundListener(int) func(network, address string, c syscall.RawConn) error { return nil }

// Listen returns a listener with every connection of l that the limit allows: there is no loop that could take one.
func (f *Fanout) Listen(l net.Listener, _ wire.BareHandler) net.Listener {
	return wire.Guard(f.addresses.Listen(l))
}

// Take is never called here.
func (f *Fanout) Take(c *wire.BareConn, _ Stream) { c.Close() }
