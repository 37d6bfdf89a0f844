package server

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/settings"
)

// flood is a client that asks on many streams of one connection, and gives them no room for an answer.
type flood struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// startFlood asks on n streams. Without encryption trust is nil.
func startFlood(t *testing.T, address, path string, n int, trust *tls.Config) *flood {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if trust != nil {
		two := trust.Clone()
		two.NextProtos = []string{"h2"}
		conn = tls.Client(conn, two)
	}
	first := subscription(path, 0)
	b := first
	request := first[len(first)-int(requestLen(first)):]
	for i := 1; i < n; i++ {
		next := append([]byte(nil), request...)
		binary.BigEndian.PutUint32(next[5:], uint32(2*i+1))
		b = append(b, next...)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	return &flood{t, conn, bufio.NewReader(conn)}
}

// requestLen is how long the last frame of a subscription is.
func requestLen(b []byte) (n uint32) {
	const preface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	for rest := b[preface:]; len(rest) > 0; rest = rest[n:] {
		n = 9 + uint32(rest[0])<<16 + uint32(rest[1])<<8 + uint32(rest[2])
	}
	return n
}

// became is what became of the streams of a connection.
type became struct {
	reset, refused int  // refused: answered without a body
	closed         bool // all of them at once
	limit          uint32
}

// watch reads until enough of the streams are over.
func (f *flood) watch(enough func(became) bool) (b became) {
	f.t.Helper()
	for !enough(b) {
		frame, err := readFrame(f.in)
		if err != nil {
			b.closed = true
			return b
		}
		switch {
		case frame.kind == frameReset:
			b.reset++
		case frame.kind == frameHeaders && frame.flags&flagEndStream != 0:
			b.refused++
		case frame.kind == frameSettings:
			for p := frame.payload; len(p) >= 6; p = p[6:] {
				if binary.BigEndian.Uint16(p) == 3 {
					b.limit = binary.BigEndian.Uint32(p[2:])
				}
			}
		}
	}
	return b
}

// isAlive reports whether the connection still answers.
func (f *flood) isAlive() bool {
	if _, err := f.conn.Write(frame{kind: framePing, payload: make([]byte, 8)}.append(nil)); err != nil {
		return false
	}
	for {
		frame, err := readFrame(f.in)
		if err != nil {
			return false
		}
		if frame.kind == framePing && frame.flags&flagAck != 0 {
			return true
		}
	}
}

// floodPaths are answered with a body, without a key.
var floodPaths = map[string]string{"gateway": "/api/v1/openapi.json", "admin": "/metrics", "subscriber": "/v1/topics/x"}

var http2Line = regexp.MustCompile(`(?m)^freshet_http2_(held_bytes|refused_total|cut_total) ([0-9.e+]+)`)

// http2Stats is what the server says of streams.
func (r *running) http2Stats() (st httpkit.StreamStats) {
	r.t.Helper()
	_, text := get(r.t, r.address("admin"), "/metrics")
	for _, m := range http2Line.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			r.t.Fatal(err)
		}
		switch m[1] {
		case "held_bytes":
			st.Held = int64(n)
		case "refused_total":
			st.Refused = uint64(n)
		default:
			st.Cut = uint64(n)
		}
	}
	return st
}

// TestStreamsWhoseClientTakesNothingAreCutOnEveryListener: each of them, while their connection lives on.
func TestStreamsWhoseClientTakesNothingAreCutOnEveryListener(t *testing.T) {
	dir := t.TempDir()
	pool := writeCertificate(t, dir, "first")
	for name, trust := range map[string]*tls.Config{"in the clear": nil, "over TLS": {RootCAs: pool, ServerName: "127.0.0.1"}} {
		t.Run(name, func(t *testing.T) {
			r := runWithin(t, bounds{stall: 300 * time.Millisecond}, func(s *settings.Settings) {
				s.Subscriber.WriteTimeout = 300 * time.Millisecond
				if trust != nil {
					s.TLS.Certificate, s.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
				}
			})
			for listener, path := range floodPaths {
				trust := trust
				if listener == "admin" {
					trust = nil // it stays plain
				}
				f := startFlood(t, r.address(listener), path, 20, trust)
				if b := f.watch(func(b became) bool { return b.reset == 20 }); b.closed || b.refused > 0 {
					t.Errorf("%s: of 20 streams %d were reset and %d refused; the connection is closed: %t", listener, b.reset, b.refused, b.closed)
				}
				if !f.isAlive() {
					t.Errorf("%s: the connection ended with its streams", listener)
				}
			}
			waitFor(t, "everything to be given back", func() bool { return r.http2Stats().Held == 0 })
			if cut := r.http2Stats().Cut; cut < 40 {
				t.Errorf("%d streams are counted as cut", cut)
			}
		})
	}
}

// TestStreamsThatWaitForTheirClientsTakeBoundedRoom: many connections of many streams leave the process with what it may hold at most, and
// others are answered.
func TestStreamsThatWaitForTheirClientsTakeBoundedRoom(t *testing.T) {
	const room, conns, streams = 4 << 20, 12, httpkit.MaxStreams
	r := runWithin(t, bounds{stall: time.Hour, streamRoom: room}, func(s *settings.Settings) { s.Subscriber.WriteTimeout = time.Hour })
	r.await("ready")
	two := http2Client()
	defer two.CloseIdleConnections()
	for listener, path := range floodPaths {
		t.Run(listener, func(t *testing.T) {
			var floods []*flood
			for range conns {
				floods = append(floods, startFlood(t, r.address(listener), path, streams, nil))
			}
			// Nobody reads what became of them before: it must not matter.
			waitFor(t, "the rest to be refused", func() bool {
				st := r.http2Stats()
				if st.Held > room {
					t.Fatalf("%d bytes are held", st.Held)
				}
				return st.Refused > 0
			})
			if status, _ := get(t, r.address("gateway"), "/console/"); status != http.StatusOK {
				t.Errorf("meanwhile the console answers %d", status)
			}
			waitFor(t, "another one to be answered by HTTP/2", func() bool {
				resp, err := two.Get("http://" + r.address("gateway") + "/console/")
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err == nil && resp.StatusCode == http.StatusOK
			})
			for _, f := range floods {
				f.conn.Close()
			}
			waitFor(t, "everything to be given back", func() bool { return r.http2Stats().Held == 0 })
		})
	}
}

// http2Client has one connection.
func http2Client() *http.Client {
	var two http.Protocols
	two.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: &two, MaxConnsPerHost: 1}, Timeout: patience}
}

// TestAConnectionHasABoundedNumberOfStreams, which it is told, on every listener.
func TestAConnectionHasABoundedNumberOfStreams(t *testing.T) {
	r := runWithin(t, bounds{stall: time.Hour}, func(s *settings.Settings) { s.Subscriber.WriteTimeout = time.Hour })
	for listener, path := range floodPaths {
		f := startFlood(t, r.address(listener), path, httpkit.MaxStreams+20, nil)
		if b := f.watch(func(b became) bool { return b.reset == 20 && b.limit > 0 }); b.closed || b.limit != httpkit.MaxStreams {
			t.Errorf("%s: %+v", listener, b)
		}
	}
}

// TestStreamsCountAgainstTheLimitOfTheirAddress, all but one, which is the connection's own.
func TestStreamsCountAgainstTheLimitOfTheirAddress(t *testing.T) {
	const limit = 10
	r := runWithin(t, bounds{stall: time.Hour}, func(s *settings.Settings) {
		s.Subscriber.WriteTimeout, s.Limits.ConnectionsPerAddress = time.Hour, limit
	})
	for _, listener := range []string{"gateway", "subscriber"} {
		f := startFlood(t, r.address(listener), floodPaths[listener], limit+5, nil)
		if b := f.watch(func(b became) bool { return b.refused == 5 }); b.closed || b.reset > 0 {
			t.Errorf("%s: of %d streams %d were reset and %d refused; closed: %t", listener, limit+5, b.reset, b.refused, b.closed)
		}
		if conn, err := net.Dial("tcp", r.address(listener)); err == nil {
			_ = conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if b, err := io.ReadAll(io.LimitReader(conn, 1)); len(b) > 0 {
				t.Errorf("%s: one more connection is answered %q (%v)", listener, b, err)
			}
			conn.Close()
		}
		f.conn.Close()
		waitFor(t, "room for the address", func() bool {
			resp, err := client.Get("http://" + r.address(listener) + "/console/")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return true
		})
	}
}

// TestManyStreamsOfOneConnectionAreAnswered: what is bounded is what waits.
func TestManyStreamsOfOneConnectionAreAnswered(t *testing.T) {
	r := runWithin(t, bounds{streamRoom: 8 << 20}, nil)
	c := http2Client()
	defer c.CloseIdleConnections()
	var asked sync.WaitGroup
	for range 150 {
		asked.Go(func() {
			resp, err := c.Get("http://" + r.address("gateway") + "/console/")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n == 0 || resp.StatusCode != http.StatusOK {
				t.Errorf("%s, %d bytes, %v", resp.Status, n, err)
			}
		})
	}
	asked.Wait()
}
