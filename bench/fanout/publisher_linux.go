package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// publishing is a number of publishers at work. Each has one publication in flight, to one topic after the other; with a rate, they
// also wait for their turn.
type publishing struct {
	to       *endpoint
	payloads *payloads
	inFlight int
	rate     float64 // publications per second of all together; 0: as fast as they are acknowledged
	limit    int64   // publications of all together; 0: until stopped

	acked atomic.Int64
	stop  atomic.Bool
	done  sync.WaitGroup
	mu    sync.Mutex
	err   error
}

func (p *publishing) start(ctx context.Context) {
	began := clock()
	for i := range p.inFlight {
		p.done.Go(func() {
			if err := p.run(ctx, i, began); err != nil {
				p.mu.Lock()
				p.err = err
				p.mu.Unlock()
			}
		})
	}
}

// wait stops the publishers and returns how many publications were acknowledged.
func (p *publishing) wait() (int64, error) {
	p.stop.Store(true)
	p.done.Wait()
	return p.acked.Load(), p.err
}

func (p *publishing) run(ctx context.Context, number int, began int64) error {
	c, err := dialPublisher(ctx, p.to)
	if err != nil {
		return err
	}
	defer c.close()
	share := p.limit / int64(p.inFlight)
	every := float64(p.inFlight) / p.rate * float64(time.Second)
	for n := int64(1); !p.stop.Load() && ctx.Err() == nil && (p.limit == 0 || n <= share); n++ {
		at := clock()
		if p.rate > 0 {
			due := began + int64((float64(n-1)+float64(number)/float64(p.inFlight))*every)
			if due > at {
				time.Sleep(time.Duration(due - at))
				due = clock()
			}
			at = due // one that is late because of the server is late for the subscribers too
		}
		t := &p.to.topics[(n+int64(number))%int64(len(p.to.topics))]
		if err := c.publish(t, p.payloads, mark{byte('0' + number), uint32(n), at}); err != nil {
			return fmt.Errorf("publication %d: %w", n, err)
		}
		p.acked.Add(1)
	}
	return nil
}

// publisherConn is one keep-alive connection to where a server takes publications.
type publisherConn struct {
	ctx     context.Context
	to      *endpoint
	conn    net.Conn
	reader  *bufio.Reader
	payload []byte
	request []byte
}

func dialPublisher(ctx context.Context, to *endpoint) (*publisherConn, error) {
	c := &publisherConn{ctx: ctx, to: to}
	return c, c.dial()
}

func (c *publisherConn) dial() (err error) {
	var d net.Dialer
	if c.conn, err = d.DialContext(c.ctx, "tcp", c.to.publish); err == nil {
		c.reader = bufio.NewReader(c.conn)
	}
	return err
}

func (c *publisherConn) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}

// ackTimeout bounds how long a server may take to acknowledge.
const ackTimeout = 30 * time.Second

// publish sends one publication and waits for its acknowledgement.
func (c *publisherConn) publish(t *topic, p *payloads, m mark) error {
	c.payload = p.append(c.payload[:0], m)
	c.request = t.appendPublication(c.request[:0], c.payload)
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return err
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(ackTimeout)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.Close { // Pushpin does so after every publication
		c.close()
		c.conn = nil
	}
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	return err
}

// publishFinal sends each topic a single publication that is known to be the last.
func publishFinal(ctx context.Context, to *endpoint, p *payloads, seq uint32) error {
	c, err := dialPublisher(ctx, to)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range to.topics {
		if err := c.publish(&to.topics[i], p, mark{finalPublisher, seq, clock()}); err != nil {
			return err
		}
	}
	return nil
}

func (p *publishing) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
