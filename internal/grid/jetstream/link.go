package jetstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/nats-io/nats.go"
)

// minVersion is the oldest server that the grid was tested with. Older ones have known faults in conditional writes.
const (
	minMajor = 2
	minMinor = 15
)

// A link that goes dark without a word is given up after three to four seconds, so that a node is up to date again within the five that
// are promised. Less would make nodes on busy machines change servers for nothing.
const (
	pingEvery = time.Second
	maxPings  = 3

	// The library writes with its lock held, and pings wait for that lock. Its own limit is a minute.
	writeStall = 2 * time.Second
)

// link is this node's connection to the servers, and what all parts of the grid need besides.
type link struct {
	// Static after connect.
	node       string // the name of this node
	prefix     string // of subjects
	log        *slog.Logger
	conn       *nats.Conn
	maxPayload int

	tasks  *group
	faults *faults
}

func newLink(opts *Options) *link {
	return &link{node: freshet.NewID(), prefix: opts.Prefix, log: opts.Log, tasks: newGroup(), faults: newFaults()}
}

// connect waits for a server that can do what the grid needs. reconnected is called whenever there is a new connection.
func (l *link) connect(ctx context.Context, opts *Options, reconnected func()) error {
	if err := l.dial(ctx, opts, reconnected); err != nil {
		return err
	}
	return l.checkServer()
}

// close ends the connection. No callback of it runs afterwards.
func (l *link) close() {
	if l.conn == nil {
		return
	}
	closed := make(chan struct{})
	l.conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if l.conn.IsClosed() {
		return
	}
	l.conn.Close()
	<-closed
}

func (l *link) dial(ctx context.Context, opts *Options, reconnected func()) error {
	options := []nats.Option{
		nats.Name("freshet " + l.node),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1), // what cannot be sent fails at once, and whoever sent it decides
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(maxPings),
		nats.FlusherTimeout(writeStall),
		nats.ReconnectOnFlusherError(),
		nats.Timeout(2 * time.Second),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(l.disconnected),
		nats.ReconnectHandler(func(conn *nats.Conn) { l.reconnected(conn, reconnected) }),
		nats.ErrorHandler(l.asyncError),
	}
	if opts.Credentials != "" {
		options = append(options, nats.UserCredentials(opts.Credentials))
	}
	if opts.CA != "" {
		options = append(options, nats.RootCAs(opts.CA))
	}
	if opts.Certificate != "" {
		options = append(options, nats.ClientCert(opts.Certificate, opts.Key))
	}
	if opts.User != "" {
		options = append(options, nats.UserInfo(opts.User, opts.Password.Reveal()))
	}
	if opts.InProcess != nil {
		options = append(options, nats.InProcessServer(opts.InProcess))
	}
	var err error
	for try := 0; ; try++ {
		if l.conn, err = nats.Connect(opts.URL, options...); err == nil {
			return nil
		}
		if try == 0 {
			l.log.Warn("waiting for NATS", "servers", hosts(opts.URL), "err", err)
		}
		if isLasting(err) || !pause(ctx, 250*time.Millisecond) {
			hint := "check that the servers run and that nats is right"
			if (errors.Is(err, nats.ErrTLS) || isAlert(err)) && opts.Certificate == "" {
				hint += "; servers that want a certificate take it from nats_certificate and nats_key"
			}
			return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("NATS cannot be reached at %s (%v): %s", hosts(opts.URL), err, hint))
		}
	}
}

// isLasting reports whether no waiting helps: a certificate, a file or an account is wrong.
func isLasting(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	return path || verification || isAlert(err) || errors.Is(err, nats.ErrAuthorization)
}

// isAlert reports whether the server said no in TLS. Sometimes a client only sees that it hangs up.
func isAlert(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

// hosts is a list of URLs without anything secret.
func hosts(urls string) string {
	var all []string
	for one := range strings.SplitSeq(urls, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil && u.Host != "" {
			all = append(all, u.Host)
		}
	}
	if len(all) == 0 {
		return "(in process)"
	}
	return strings.Join(all, ", ")
}

// The connection says what happens to it. After each of these something may have been missed.

func (l *link) disconnected(_ *nats.Conn, err error) {
	l.faults.suspect()
	l.faults.note()
	if l.tasks.ctx.Err() == nil {
		l.log.Warn("NATS disconnected", "err", err)
	}
}

func (l *link) reconnected(conn *nats.Conn, then func()) {
	l.faults.note()
	l.log.Info("NATS reconnected", "server", conn.ConnectedAddr())
	then()
	l.faults.missed()
}

func (l *link) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	l.log.Warn("NATS reports an error", "err", err)
	l.faults.note()
	l.faults.missed()
}

// checkServer rejects servers that cannot do what the grid needs.
func (l *link) checkServer() error {
	version := l.conn.ConnectedServerVersion()
	if !newEnough(version) {
		return freshet.Errorf(freshet.Unavailable, "The NATS server at %s has version %s; Freshet needs %d.%d or newer",
			l.conn.ConnectedAddr(), version, minMajor, minMinor)
	}
	l.maxPayload = int(l.conn.MaxPayload())
	if l.maxPayload < minPayload {
		return freshet.Errorf(freshet.Unavailable, "The NATS server at %s takes messages of %d bytes only; set its max_payload to %d or more (1 MB is its default)",
			l.conn.ConnectedAddr(), l.maxPayload, minPayload)
	}
	return nil
}

// minPayload leaves room for a list of a thousand topics in one request.
const minPayload = 128 << 10

func newEnough(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err1 == nil && err2 == nil && (a > minMajor || a == minMajor && b >= minMinor)
}
