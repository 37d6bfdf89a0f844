package poll

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet"
)

func guarded(o *clientOptions) { o.guarded = true }

func TestInternalAddressesAreNotDialled(t *testing.T) {
	asked := atomic.Int32{}
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); fmt.Fprint(w, "{}") })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(o.URL, "http://"))
	c := testClient(t, guarded)
	for _, host := range []string{
		"127.0.0.1", "127.8.8.8", "localhost", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200",
		"169.254.169.254", "168.63.129.16", "[fe80::1]", "[fd00:ec2::254]", "224.0.0.1", "[ff02::1]", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1",
	} {
		_, err := get(t, c, "http://"+host+":"+port+"/")
		if e := wantFailure(t, err, freshet.SourceUnreachable); e.Msg != unreachable {
			t.Errorf("%s: %q", host, e.Msg)
		}
	}
	for _, host := range []string{"127.1", "2130706433", "0x7f000001", "0177.0.0.1", "017700000001"} {
		if _, err := get(t, c, "http://"+host+":"+port+"/"); err == nil {
			t.Errorf("%s was reached", host)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("an internal address was asked %d times", asked.Load())
	}
}

func TestRedirectsAndTokenEndpointsAreGuardedToo(t *testing.T) {
	asked := atomic.Int32{}
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	c := testClient(t, guarded)
	tg := targetOf(t, "http://192.0.2.1/")
	tg.credentials.OAuth2 = &freshet.OAuth2{TokenURL: inside.URL, ClientID: "id", ClientSecret: "secret"}
	_, err := c.fetch(t.Context(), &request{endpoint: tg})
	wantFailure(t, err, freshet.SourceUnreachable)
	if asked.Load() != 0 {
		t.Error("the token endpoint inside was asked")
	}
}

// TestANameThatMovesInsideIsNotFollowed has a name server that gives a public address, then a loopback one.
func TestANameThatMovesInsideIsNotFollowed(t *testing.T) {
	asked := atomic.Int32{}
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); fmt.Fprint(w, "{}") })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(o.URL, "http://"))
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go answerLoopback(server)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	open := testClient(t, func(o *clientOptions) { o.resolver = resolver })
	if _, err := get(t, open, "http://rebind.example.com:"+port+"/"); err != nil || asked.Load() != 1 {
		t.Fatalf("without the guard the name leads inside, so that this test means something: %v", err)
	}
	closed := testClient(t, guarded, func(o *clientOptions) { o.resolver = resolver })
	_, err = get(t, closed, "http://rebind.example.com:"+port+"/")
	wantFailure(t, err, freshet.SourceUnreachable)
	if asked.Load() != 1 {
		t.Error("the guard let it through")
	}
}

// answerLoopback answers every question for an A record with 127.0.0.1 and every other one with nothing.
func answerLoopback(server net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		q := buffer[:n]
		end := 12
		for q[end] != 0 {
			end += int(q[end]) + 1
		}
		end += 5
		kind := binary.BigEndian.Uint16(q[end-4:])
		reply := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
		if kind == 1 {
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		_, _ = server.WriteTo(reply, from)
	}
}
