//go:build !linux

package fanout

import (
	"net"
	"net/http"
	"syscall"
	"time"
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

// Front implements what it does on Linux: nothing is taken off net/http here.
func (f *Fanout) Front(l net.Listener, _ FrontHandler) net.Listener { return l }
