package fanout

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Gate bounds how many connections one address may have open, or streams on them, so that a flood from one place does not take the descriptors of
// everybody else. IPv6 counts by /64, since one customer commands a whole one.
type Gate struct {
	limit  int32
	exempt []netip.Prefix

	// Guarded by mu. A ticket is a place in slots; the first one is nobody's.
	mu      sync.Mutex
	places  map[netip.Addr]Ticket
	slots   []slot
	free    []Ticket
	refused uint64
}

type slot struct {
	address netip.Addr
	open    int32
}

// Ticket is what a connection gives back when it goes. It is small, because there may be a hundred thousand of them. The zero
// Ticket is of connections that nobody counts.
type Ticket uint32

// NewGate returns a gate for limit connections of each address but those in the exempt networks, such as proxies. A limit of 0
// lets everybody in.
func NewGate(limit int, exempt []netip.Prefix) *Gate {
	return &Gate{limit: int32(limit), exempt: exempt, places: make(map[netip.Addr]Ticket), slots: make([]slot, 1)}
}

// enter counts a connection in. A nil gate lets everybody in.
func (g *Gate) enter(address netip.Addr) (Ticket, bool) {
	if g == nil || g.limit <= 0 || !address.IsValid() {
		return 0, true
	}
	address = address.Unmap()
	if slices.ContainsFunc(g.exempt, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return 0, true
	}
	if address.Is6() {
		network, _ := address.Prefix(64) // cannot fail
		address = network.Addr()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t, known := g.places[address]
	if !known {
		t = g.place(address)
	}
	if g.slots[t].open >= g.limit {
		g.refused++
		return 0, false
	}
	g.slots[t].open++
	return t, true
}

// place finds room for an address. The caller holds mu.
func (g *Gate) place(address netip.Addr) Ticket {
	var t Ticket
	if n := len(g.free); n > 0 {
		t, g.free = g.free[n-1], g.free[:n-1]
	} else {
		t = Ticket(len(g.slots))
		g.slots = append(g.slots, slot{})
	}
	g.slots[t].address = address
	g.places[address] = t
	return t
}

// leave counts a connection out.
func (g *Gate) leave(t Ticket) {
	if t == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.slots[t]
	if s.open--; s.open == 0 {
		delete(g.places, s.address)
		*s = slot{}
		g.free = append(g.free, t)
	}
}

// Enter counts in what takes as much as a connection of an address without being one, such as a stream of HTTP/2. What it returns counts
// it out.
func (g *Gate) Enter(address netip.Addr) (leave func(), ok bool) {
	t, ok := g.enter(address)
	return func() { g.leave(t) }, ok
}

// Refused is how many connections were closed at once.
func (g *Gate) Refused() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// Listen returns l behind the gate. Connections beyond the limit are closed without a word: whoever floods does not listen.
func (g *Gate) Listen(l net.Listener) net.Listener {
	if g == nil || g.limit <= 0 {
		return l
	}
	return &gatedListener{l, g}
}

type gatedListener struct {
	net.Listener
	gate *Gate
}

// Accept implements net.Listener.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		peer, _ := tcp.RemoteAddr().(*net.TCPAddr)
		if peer == nil {
			return c, nil
		}
		t, ok := l.gate.enter(peer.AddrPort().Addr())
		if ok {
			return &ticketed{TCPConn: tcp, pass: pass{gate: l.gate, ticket: t}}, nil
		}
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// pass is the ticket of a connection that Go's own types carry.
type pass struct {
	gate   *Gate
	mu     sync.Mutex
	ticket Ticket // Guarded by mu.
}

// take gives the ticket to somebody else.
func (p *pass) take() Ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.ticket
	p.ticket = 0
	return t
}

// ticketed is a connection that gives its ticket back.
type ticketed struct {
	*net.TCPConn
	pass
}

// Close implements net.Conn.
func (c *ticketed) Close() error {
	c.gate.leave(c.take())
	return c.TCPConn.Close()
}
