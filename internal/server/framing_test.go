package server

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/settings"
)

// speaker is a way to connect to a server that speaks HTTP/1.1.
type speaker struct {
	name  string
	r     *running
	trust *tls.Config // nil for plain connections
}

// speakers starts a server without and one with TLS, both with the API /e0.
func speakers(t *testing.T, upstream string) []speaker {
	t.Helper()
	dir := t.TempDir()
	pool := writeCertificate(t, dir, "first")
	plain := run(t, nil)
	secure := run(t, func(s *settings.Settings) {
		s.TLS.Certificate, s.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})
	for _, r := range []*running{plain, secure} {
		if status := administer(t, r, "", "/apis", "name", "e0", "request_path", "/e0", "upstream_url", upstream); status != http.StatusCreated {
			t.Fatalf("registering answers %d", status)
		}
	}
	return []speaker{
		{"plain", plain, nil},
		{"TLS", secure, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}},
		{"TLS with ALPN", secure, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}}},
	}
}

func (s speaker) dial(listener string) (net.Conn, error) {
	conn, err := net.Dial("tcp", s.r.address(listener))
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if s.trust == nil || listener == "admin" { // that one is plain
		return conn, nil
	}
	return tls.Client(conn, s.trust.Clone()), nil
}

// next reads one answer.
func next(in *bufio.Reader) (*http.Response, string, error) {
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// TestAmbiguousFramingIsRefusedOnEveryListener with and without TLS, whatever came before it on the connection.
func TestAmbiguousFramingIsRefusedOnEveryListener(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Contains(r.URL.RawQuery, "AMBIGUOUS") || strings.Contains(r.URL.Path, "SMUGGLED") {
			t.Errorf("%s reached the upstream", r.RequestURI)
		}
	}))
	t.Cleanup(up.Close)
	const host = "Host: localhost\r\n"
	ambiguous := map[string]string{
		"a length and chunks": "POST %s?AMBIGUOUS HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks and a length": "POST %s?AMBIGUOUS HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"lines without CR":    "GET %s?AMBIGUOUS HTTP/1.1\nHost: localhost\n\n",
		"a line without CR":   "GET %s?AMBIGUOUS HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n",
		"chunks in HTTP/1.0":  "POST %s?AMBIGUOUS HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"folded chunks":       "POST %s?AMBIGUOUS HTTP/1.1\r\n" + host + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
	}
	before := map[string]string{
		"nothing":            "",
		"GET":                "GET %s HTTP/1.1\r\n" + host + "\r\n",
		"POST with a length": "POST %s HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}",
		"POST with chunks":   "POST %s HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n",
	}
	const smuggled = "GET /e0/SMUGGLED HTTP/1.1\r\n" + host + "\r\n"
	var asked sync.WaitGroup
	places := make(chan struct{}, 32) // so that a busy machine comes to each before its time is over
	for _, s := range speakers(t, up.URL) {
		for _, to := range []struct{ listener, path, keeps string }{ // keeps is what leaves the connection open
			{"gateway", "/e0/p", "/e0/p"},
			{"gateway", "/api/v1/sessions", "/e0/p"},
			{"gateway", "/publish/v1/topics/x", "/e0/p"},
			{"gateway", "/nowhere", "/e0/p"},
			{"admin", "/apis/", "/apis/"},
			{"subscriber", "/v1/topics/none", "/"},
		} {
			for first, precursor := range before {
				for name, request := range ambiguous {
					places <- struct{}{}
					asked.Go(func() {
						defer func() { <-places }()
						about := fmt.Sprintf("%s, %s%s: %s behind %s", s.name, to.listener, to.path, name, first)
						conn, err := s.dial(to.listener)
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						sent := fmt.Sprintf(request, to.path) + smuggled
						if precursor != "" {
							precursor := fmt.Sprintf(precursor, to.keeps)
							if to.listener == "subscriber" { // which closes behind all others
								_, fields, _ := strings.Cut(precursor, " ")
								precursor = "OPTIONS " + fields
							}
							sent = precursor + sent
						}
						if _, err := io.WriteString(conn, sent); err != nil {
							t.Errorf("%s: %v", about, err)
							return
						}
						in := bufio.NewReader(conn)
						if precursor != "" {
							resp, _, err := next(in)
							if err != nil {
								t.Errorf("%s: the first is not answered: %v", about, err)
								return
							}
							if resp.Close {
								t.Errorf("%s: the first ends the connection", about)
								return
							}
						}
						resp, body, err := next(in)
						if err != nil || resp.StatusCode != http.StatusBadRequest || !resp.Close {
							t.Errorf("%s: %v %s %v", about, resp, body, err)
							return
						}
						// Our side stays open: who closes is the server.
						if more, err := io.ReadAll(in); len(more) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
							t.Errorf("%s: then %q, %v", about, more, err)
						}
					})
				}
			}
		}
	}
	asked.Wait()
}

// TestWellFramedRequestsFollowEachOther on one connection, at once and one by one, with and without TLS.
func TestWellFramedRequestsFollowEachOther(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("X-Forwarded-Proto"), body)
	}))
	t.Cleanup(up.Close)
	long := strings.Repeat("0123456789\n", 3000)
	requests := []struct{ sent, method, body string }{
		{"POST /e0/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;b=\"c\"\r\n\r\n\r\nworld!\r\n0\r\nX-Sum: 1\r\nX-T: 2\r\n\r\n", "POST", "hello\r\n\r\nworld!"},
		{"GET /e0/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET", ""},
		{"POST /e0/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n\r\n\r\n", "POST", "\r\n\r\n"},
		{"\r\nPOST /e0/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST", ""},
		{fmt.Sprintf("PUT /e0/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(long), long), "PUT", long},
		{fmt.Sprintf("PATCH /e0/ HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n%x\r\n%s\r\n%X\r\n%s\r\n0\r\n\r\n", len(long), long, len(long), long), "PATCH", long + long},
		{"DELETE /e0/ HTTP/1.1\r\nHost: x\r\n\r\n", "DELETE", ""},
	}
	for _, s := range speakers(t, up.URL) {
		for _, atOnce := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, at once: %t", s.name, atOnce), func(t *testing.T) {
				conn, err := s.dial("gateway")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				var all strings.Builder
				for _, r := range requests {
					all.WriteString(r.sent)
				}
				if atOnce {
					go func() { _, _ = io.WriteString(conn, all.String()) }()
				}
				proto := map[bool]string{true: "https", false: "http"}[s.trust != nil]
				for i, r := range requests {
					if !atOnce {
						if _, err := io.WriteString(conn, r.sent); err != nil {
							t.Fatal(err)
						}
					}
					resp, body, err := next(in)
					if err != nil || resp.StatusCode != http.StatusOK || body != r.method+" "+proto+" "+r.body {
						t.Fatalf("request %d: %v %.100q %v", i, resp, body, err)
					}
					if n := len(resp.Header["Strict-Transport-Security"]); (n == 1) != (s.trust != nil) {
						t.Errorf("request %d: %d times Strict-Transport-Security", i, n)
					}
				}
				// Who asks before it sends is told to go on.
				_, _ = io.WriteString(conn, "POST /e0/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
				if resp, _, err := next(in); err != nil || resp.StatusCode != http.StatusContinue {
					t.Fatal(resp, err)
				}
				_, _ = io.WriteString(conn, "2\r\nok\r\n0\r\n\r\n")
				resp, body, err := next(in)
				for err == nil && resp.StatusCode == http.StatusContinue { // the upstream's, which may come too
					resp, body, err = next(in)
				}
				if err != nil || body != "POST "+proto+" ok" {
					t.Fatal(resp, body, err)
				}
			})
		}
	}
}

// TestUpgradesPassWithAndWithoutTLS: what follows is no HTTP, so nobody looks for requests in it.
func TestUpgradesPassWithAndWithoutTLS(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for range 3 {
			line, _ := buf.ReadString('\n')
			_, _ = io.WriteString(conn, "echo "+line)
		}
	}))
	t.Cleanup(up.Close)
	for _, s := range speakers(t, up.URL) {
		t.Run(s.name, func(t *testing.T) {
			conn, err := s.dial("gateway")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			_, _ = io.WriteString(conn, "GET /e0/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatal(resp, err)
			}
			for _, line := range []string{"hello\n", "\n", "Transfer-Encoding: chunked\n"} {
				_, _ = io.WriteString(conn, line)
				if got, err := in.ReadString('\n'); err != nil || got != "echo "+line {
					t.Fatalf("got %q, %v", got, err)
				}
			}
		})
	}
}

// TestPlainHTTPToATLSListenerIsToldSo, and one that says nothing holds up nobody else.
func TestPlainHTTPToATLSListenerIsToldSo(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(up.Close)
	s := speakers(t, up.URL)[1]
	for _, listener := range []string{"gateway", "subscriber"} {
		silent, err := net.Dial("tcp", s.r.address(listener))
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		if status := say(t, s.r.address(listener), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); status != http.StatusBadRequest {
			t.Errorf("%s answers %d", listener, status)
		}
	}
}
