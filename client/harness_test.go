package client_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/server"
	"github.com/freshet-io/freshet/internal/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; nothing should come near it.
const patience = 60 * time.Second

// node is a real server in this process.
type node struct {
	gateway, subscriber, admin string // host:port
	stop                       func()
}

// serve starts a server on free ports and returns once it is ready.
func serve(t *testing.T, data string, flags map[string]string) *node {
	t.Helper()
	all := map[string]string{"data": data, "drain-timeout": "1s"}
	for _, listener := range []string{"gateway", "admin", "subscriber"} {
		all[listener+"-listen"] = "127.0.0.1:0"
	}
	for name, value := range flags {
		all[name] = value
	}
	effective, err := settings.Load(settings.Sources{Flags: all})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan map[string]string, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{Settings: effective.Settings, Version: "test", Log: slog.New(announce{ready})})
	}()
	n := &node{stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(n.stop)
	select {
	case at := <-ready:
		n.gateway, n.subscriber, n.admin = at["gateway"], at["subscriber"], at["admin"]
	case err := <-ended:
		ended <- err
		t.Fatalf("the server ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the server does not become ready")
	}
	return n
}

// announce is a log handler that waits for the ready line.
type announce struct{ ready chan<- map[string]string }

func (announce) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (a announce) WithAttrs([]slog.Attr) slog.Handler         { return a }
func (a announce) WithGroup(string) slog.Handler              { return a }
func (a announce) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "ready" {
		at := map[string]string{}
		r.Attrs(func(attr slog.Attr) bool { at[attr.Key] = attr.Value.String(); return true })
		a.ready <- at
	}
	return nil
}

// connect returns a client that is signed in as the admin.
func connect(t *testing.T, n *node) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{
		BaseURL: "http://" + n.gateway, SubscriberURL: "http://" + n.subscriber, AdminURL: "http://" + n.admin,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	if _, err := c.SignIn(t.Context(), freshet.FixedAdminEmail, freshet.FixedAdminPassword); err != nil {
		t.Fatal(err)
	}
	return c
}

// fixture is an app with a topic to publish to.
type fixture struct {
	t     *testing.T
	c     *client.Client
	app   *client.App
	topic *client.Topic
}

func newFixture(t *testing.T, c *client.Client, payload *client.Payload) *fixture {
	t.Helper()
	app, err := c.CreateApp(t.Context(), client.AppChange{Name: client.Set(t.Name())})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := c.CreateTopic(t.Context(), app.ID, client.NewTopic{Name: "Quotes",
		Publisher: client.NewPublisher{Type: freshet.HTTPPost, Payload: payload}})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, c: c, app: app, topic: topic}
}

func (f *fixture) publish(document string) client.Published {
	f.t.Helper()
	p, err := f.c.Publish(f.t.Context(), f.topic.ID, []byte(document), client.PublishOptions{Key: f.app.PublisherKey})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// relay is a TCP proxy whose target can move and whose connections can be cut.
type relay struct {
	listener net.Listener
	wg       sync.WaitGroup

	// Guarded by mu.
	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
}

func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, target: target, conns: map[net.Conn]bool{}}
	r.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.carry(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); r.cut(); r.wg.Wait() })
	return r
}

func (r *relay) carry(conn net.Conn) {
	r.mu.Lock()
	target := r.target
	r.conns[conn] = true
	r.mu.Unlock()
	defer func() {
		conn.Close()
		r.mu.Lock()
		delete(r.conns, conn)
		r.mu.Unlock()
	}()
	up, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer up.Close()
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(up, conn); up.Close() })
	wg.Go(func() { io.Copy(conn, up); conn.Close() })
	wg.Wait()
}

// cut ends every connection, as a bad network would.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
}

func (r *relay) move(target string) {
	r.mu.Lock()
	r.target = target
	r.mu.Unlock()
	r.cut()
}
