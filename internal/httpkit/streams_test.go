package httpkit

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// streamClient speaks so much HTTP/2 (RFC 9113) that it can decide how much of an answer it takes.
type streamClient struct {
	t    *testing.T
	conn net.Conn
	read func() (kind, flags byte, length int)
}

const dataFrame, headersFrame, resetFrame, settingsFrame, windowFrame byte = 0, 1, 3, 4, 8

// dialStreams connects to a server with the handler. The client takes nothing of an answer until it says so.
func dialStreams(t *testing.T, handler http.Handler) *streamClient {
	client, server := net.Pipe()
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: handler, Protocols: &both, ConnContext: ConnContext}
	l := &oneConn{conn: server, closed: make(chan struct{})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { client.Close(); srv.Close() })
	c := &streamClient{t: t, conn: client}
	c.read = func() (kind, flags byte, length int) {
		var head [9]byte
		if _, err := io.ReadFull(client, head[:]); err != nil {
			return resetFrame, 0, 0
		}
		length = int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		_, _ = io.CopyN(io.Discard, client, int64(length))
		return head[3], head[4], length
	}
	go func() {
		_, _ = io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		c.send(settingsFrame, 0, 0, []byte{0, 4, 0, 0, 0, 0})              // no room for any stream
		c.send(windowFrame, 0, 0, []byte{0x3f, 0, 0, 0})                   // and much for the connection
		c.send(headersFrame, 5, 1, []byte{0x82, 0x86, 0x84, 0x01, 1, 'x'}) // GET / of x, and nothing more
	}()
	return c
}

func (c *streamClient) send(kind, flags byte, stream uint32, payload []byte) {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, byte(len(payload)), kind, flags}, stream)
	_, _ = c.conn.Write(append(b, payload...))
}

// take gives the stream room for n bytes more.
func (c *streamClient) take(n uint32) {
	c.send(windowFrame, 0, 1, binary.BigEndian.AppendUint32(nil, n))
}

// end reads until the stream ends, and tells how, and how long its answer was.
func (c *streamClient) end() (kind byte, body int) {
	for {
		kind, flags, length := c.read()
		switch {
		case kind == resetFrame:
			return kind, body
		case kind == dataFrame:
			if body += length; flags&1 != 0 {
				return kind, body
			}
		case kind == headersFrame && flags&1 != 0:
			return kind, body
		}
	}
}

const testStall = 30 * time.Second

func answerOf(n int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, n)) })
}

func TestAStreamWhoseClientTakesNothingIsCut(t *testing.T) {
	for name, length := range map[string]int{"a short answer": 10, "a long answer": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStreams(10 << 20)
				begun := time.Now()
				c := dialStreams(t, s.Bound(StreamLimits{Stall: testStall}, answerOf(length)))
				if kind, _ := c.end(); kind != resetFrame {
					t.Errorf("the stream ends with frame %d", kind)
				}
				if took := time.Since(begun); took != testStall { // of the bubble
					t.Errorf("it was cut after %v", took)
				}
				synctest.Wait()
				if st := s.Stats(); st != (StreamStats{Cut: 1}) {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestASlowReaderOfAStreamIsNotCut, whether it was slow from the beginning or not.
func TestASlowReaderOfAStreamIsNotCut(t *testing.T) {
	for name, first := range map[string]uint32{"always": 0, "after a while": 40 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const length = 150 << 10
				c := dialStreams(t, NewStreams(10<<20).Bound(StreamLimits{Stall: testStall}, answerOf(length)))
				go func() {
					time.Sleep(time.Second) // of the bubble
					c.take(first + 1)
					for taken := first; taken < length; taken += 1 << 10 {
						time.Sleep(testStall / 32)
						c.take(1 << 10)
					}
				}()
				if kind, n := c.end(); kind != dataFrame || n != length {
					t.Errorf("the stream ends with frame %d after %d bytes", kind, n)
				}
			})
		})
	}
}

// TestAHandlerThatWritesNothingIsNotCut: events may be long in coming.
func TestAHandlerThatWritesNothingIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dialStreams(t, NewStreams(10<<20).Bound(StreamLimits{Stall: testStall}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				time.Sleep(10 * testStall) // of the bubble
				_, _ = io.WriteString(w, "event")
				_ = http.NewResponseController(w).Flush()
			}
		})))
		go func() {
			time.Sleep(time.Second) // of the bubble
			c.take(1 << 10)
		}()
		if kind, n := c.end(); kind != dataFrame || n != 15 {
			t.Errorf("the stream ends with frame %d after %d bytes", kind, n)
		}
	})
}

func TestAStreamWithoutRoomIsRefusedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		room int64
		end  byte
	}{
		"for itself":     {streamCost / 2, headersFrame},
		"for its answer": {streamCost + 1<<10, resetFrame},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStreams(c.room)
				client := dialStreams(t, s.Bound(StreamLimits{Stall: testStall}, answerOf(64<<10)))
				if kind, _ := client.end(); kind != c.end {
					t.Errorf("the stream ends with frame %d", kind)
				}
				synctest.Wait()
				if held := s.Stats().Held; held != 0 {
					t.Errorf("%d bytes are held", held)
				}
			})
		})
	}
}
