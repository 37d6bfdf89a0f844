package server

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	api "github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/settings"
)

// Frames of HTTP/2 (RFC 9113) that a subscriber needs. The clients at hand all read what they are sent, which is just what these
// tests must not do.
const (
	frameHeaders, frameReset, frameSettings, framePing, frameWindow byte = 1, 3, 4, 6, 8

	flagEndStream, flagAck, flagEndHeaders byte = 1, 1, 4

	settingWindow = 4
)

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

func (f frame) append(b []byte) []byte {
	n := len(f.payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), f.kind, f.flags)
	b = binary.BigEndian.AppendUint32(b, f.stream)
	return append(b, f.payload...)
}

func readFrame(r io.Reader) (f frame, err error) {
	var head [9]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	f = frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	f.payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(r, f.payload)
	return f, err
}

// subscription is all that a client says: how much it takes of each stream, that it takes any amount in all, and what it wants.
func subscription(path string, window uint32) []byte {
	text := func(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }
	fields := []byte{0x82, 0x86, 0x04} // :method GET, :scheme http, :path
	fields = text(fields, path)
	fields = text(append(fields, 0x01), "x") // :authority
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	b = frame{kind: frameSettings, payload: binary.BigEndian.AppendUint32([]byte{0, settingWindow}, window)}.append(b)
	b = frame{kind: frameWindow, payload: binary.BigEndian.AppendUint32(nil, 1<<30)}.append(b)
	return frame{kind: frameHeaders, flags: flagEndStream | flagEndHeaders, stream: 1, payload: fields}.append(b)
}

var metricLine = regexp.MustCompile(`(?m)^freshet_(transports|streams_timed_out_total)(?:{transport="goroutine"})? (\d+)`)

// streams returns how many have a goroutine and how many were cut.
func (r *running) streams() (open, cut int) {
	r.t.Helper()
	_, text := get(r.t, r.address("admin"), "/metrics")
	for _, m := range metricLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2])
		if m[1] == "transports" {
			open = n
		} else {
			cut = n
		}
	}
	return open, cut
}

// TestAnHTTP2ClientThatTakesNothingIsFreed: one that leaves everything in its socket loses its connection, and one that gives a
// stream no room loses that stream.
func TestAnHTTP2ClientThatTakesNothingIsFreed(t *testing.T) {
	dir := t.TempDir()
	pool := writeCertificate(t, dir, "first")
	for name, secure := range map[string]bool{"in the clear": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			r := run(t, func(s *settings.Settings) {
				s.Subscriber.WriteTimeout = 300 * time.Millisecond
				if secure {
					s.TLS.Certificate, s.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
				}
			})
			scheme, trust := "http", (*tls.Config)(nil)
			if secure {
				scheme, trust = "https", &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
			}
			path := "/v1/topics/" + r.longTopic(t, scheme+"://"+r.address("gateway"), trust)
			dial := func() net.Conn {
				t.Helper()
				tcp, err := net.Dial("tcp", r.address("subscriber"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tcp.Close() })
				_ = tcp.(*net.TCPConn).SetReadBuffer(16 << 10)
				if secure {
					two := trust.Clone()
					two.NextProtos = []string{"h2"}
					return tls.Client(tcp, two)
				}
				return tcp
			}

			expectReset := func(path string) net.Conn {
				t.Helper()
				conn := dial()
				_ = conn.SetDeadline(time.Now().Add(patience))
				if _, err := conn.Write(subscription(path, 0)); err != nil {
					t.Fatal(err)
				}
				for {
					f, err := readFrame(conn)
					if err != nil {
						t.Fatalf("the connection ended with the stream: %v", err)
					}
					if f.kind == frameReset && f.stream == 1 {
						return conn
					}
				}
			}
			expectReset(path + "?X-Sd-Transport=long-poll")
			reads := expectReset(path)
			if _, err := reads.Write(frame{kind: framePing, payload: make([]byte, 8)}.append(nil)); err != nil {
				t.Fatal(err)
			}
			for f := (frame{}); f.kind != framePing || f.flags&flagAck == 0; {
				var err error
				if f, err = readFrame(reads); err != nil {
					t.Fatalf("the connection ended with the stream: %v", err)
				}
			}
			waitFor(t, "the end of the first stream", func() bool { open, cut := r.streams(); return open == 0 && cut == 1 })

			deaf := dial()
			if _, err := deaf.Write(subscription(path, 1<<30)); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the end of the second stream", func() bool { open, cut := r.streams(); return open == 0 && cut == 2 })
			_ = deaf.SetDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, deaf); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("its connection is still open")
			}
		})
	}
}

// longTopic makes a topic whose document is longer than what the kernel keeps for a connection.
func (r *running) longTopic(t *testing.T, base string, trust *tls.Config) (id string) {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{TLSClientConfig: trust.Clone(), DisableKeepAlives: true}}
	c, err := api.New(api.Options{BaseURL: base, HTTPClient: hc})
	if err != nil {
		t.Fatal(err)
	}
	id, app := makeTopic(t.Context(), t, c)
	document := fmt.Appendf(nil, "%q", bytes.Repeat([]byte("long "), 600<<10))
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/publish/v1/topics/"+id, bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	post.Header = http.Header{"X-Sd-Publisher-Key": {app.PublisherKey}, "Content-Type": {"application/json"}}
	resp, err := hc.Do(post)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp.Status)
	}
	return id
}
