package wire

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// AddressLimit bounds how many connections one address may have open, or streams on them, so that a flood from one place does not take
// the descriptors of everybody else. It is a semaphore for each address. IPv6 counts by /64, since one customer commands a whole one.
type AddressLimit struct {
	// Static after NewAddressLimit.
	limit  int32
	exempt []netip.Prefix

	// Guarded by mu. The count of an address that has connections is at counts[permits[address]]; counts[0] is nobody's.
	mu      sync.Mutex
	permits map[netip.Addr]Permit
	counts  []addressCount
	free    []Permit // not in use
	refused uint64
}

type addressCount struct {
	address netip.Addr
	open    int32
}

// Permit is what a connection gives back when it goes. It is small, because there may be a hundred thousand of them. The zero
// Permit is of connections that nobody counts.
type Permit uint32

// NewAddressLimit allows limit connections to each address but those in the exempt networks, such as proxies. A limit of 0
// allows everybody any number.
func NewAddressLimit(limit int, exempt []netip.Prefix) *AddressLimit {
	return &AddressLimit{limit: int32(limit), exempt: exempt, permits: make(map[netip.Addr]Permit), counts: make([]addressCount, 1)}
}

// Acquire counts a connection in. A nil limit allows everybody.
func (l *AddressLimit) Acquire(address netip.Addr) (Permit, bool) {
	if l == nil || l.limit <= 0 || !address.IsValid() {
		return 0, true
	}
	address = address.Unmap()
	if slices.ContainsFunc(l.exempt, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return 0, true
	}
	if address.Is6() {
		network, _ := address.Prefix(64) // cannot fail
		address = network.Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, known := l.permits[address]
	if !known {
		p = l.allocate(address)
	}
	if l.counts[p].open >= l.limit {
		l.refused++
		return 0, false
	}
	l.counts[p].open++
	return p, true
}

// allocate makes a count for an address. The caller holds mu.
func (l *AddressLimit) allocate(address netip.Addr) Permit {
	var p Permit
	if n := len(l.free); n > 0 {
		p, l.free = l.free[n-1], l.free[:n-1]
	} else {
		p = Permit(len(l.counts))
		l.counts = append(l.counts, addressCount{})
	}
	l.counts[p].address = address
	l.permits[address] = p
	return p
}

// Release counts a connection out.
func (l *AddressLimit) Release(p Permit) {
	if p == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.counts[p]
	if c.open--; c.open == 0 {
		delete(l.permits, c.address)
		*c = addressCount{}
		l.free = append(l.free, p)
	}
}

// Enter is Acquire for what takes as much as a connection without being one, such as a stream of HTTP/2. What it returns counts it out.
func (l *AddressLimit) Enter(address netip.Addr) (leave func(), ok bool) {
	p, ok := l.Acquire(address)
	return func() { l.Release(p) }, ok
}

// Refused is how many connections were closed at once.
func (l *AddressLimit) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Listen returns a listener that closes connections beyond the limit without an answer: whoever floods does not listen.
func (l *AddressLimit) Listen(inner net.Listener) net.Listener {
	if l == nil || l.limit <= 0 {
		return inner
	}
	return &limitedListener{inner, l}
}

type limitedListener struct {
	net.Listener
	limit *AddressLimit
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
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
		p, ok := l.limit.Acquire(peer.AddrPort().Addr())
		if ok {
			return &limitedConn{TCPConn: tcp, permitHolder: permitHolder{limit: l.limit, permit: p}}, nil
		}
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// permitHolder has the permit of a connection until it goes, or until somebody takes the permit along with the socket.
type permitHolder struct {
	limit  *AddressLimit
	mu     sync.Mutex
	permit Permit // Guarded by mu.
}

// TakePermit takes the permit of a connection, or of one below it, for somebody who has the socket from now on and releases it.
func TakePermit(conn net.Conn) Permit {
	for {
		switch c := conn.(type) {
		case interface{ takePermit() Permit }:
			return c.takePermit()
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return 0
		}
	}
}

func (h *permitHolder) takePermit() Permit {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.permit
	h.permit = 0
	return p
}

// limitedConn is a connection that gives its permit back.
type limitedConn struct {
	*net.TCPConn
	permitHolder
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.limit.Release(c.takePermit())
	return c.TCPConn.Close()
}
