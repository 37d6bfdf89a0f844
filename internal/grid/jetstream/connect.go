package jetstream

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
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

func newSalt(length int) string { return strings.ToLower(rand.Text()[:length]) }

func (n *Grid) connect(ctx context.Context) error {
	options := []nats.Option{
		nats.Name("freshet " + n.node),
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
		nats.DisconnectErrHandler(n.disconnected),
		nats.ReconnectHandler(n.reconnected),
		nats.ErrorHandler(n.asyncError),
	}
	if o := &n.opts; o.Credentials != "" {
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	if o := &n.opts; o.CA != "" {
		options = append(options, nats.RootCAs(o.CA))
	}
	if o := &n.opts; o.Certificate != "" {
		options = append(options, nats.ClientCert(o.Certificate, o.Key))
	}
	if o := &n.opts; o.User != "" {
		options = append(options, nats.UserInfo(o.User, o.Password.Reveal()))
	}
	if n.opts.InProcess != nil {
		options = append(options, nats.InProcessServer(n.opts.InProcess))
	}
	var err error
	for try := 0; ; try++ {
		if n.conn, err = nats.Connect(n.opts.URL, options...); err == nil {
			return nil
		}
		if try == 0 {
			n.log.Warn("waiting for NATS", "servers", Servers(n.opts.URL), "err", err)
		}
		if isLasting(err) || !pause(ctx, 250*time.Millisecond) {
			hint := "check that the servers run and that nats is right"
			if (errors.Is(err, nats.ErrTLS) || isAlert(err)) && n.opts.Certificate == "" {
				hint += "; servers that want a certificate take it from nats_certificate and nats_key"
			}
			return freshet.Wrap(freshet.Unavailable, err, fmt.Sprintf("NATS cannot be reached at %s (%v): %s", Servers(n.opts.URL), err, hint))
		}
	}
}

// isLasting reports whether no waiting helps: a certificate, a file or an account is wrong.
func isLasting(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	return path || verification || isAlert(err) || errors.Is(err, nats.ErrAuthorization)
}

// isAlert reports whether the server refused in TLS. Sometimes a client only sees that it hangs up.
func isAlert(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

// Servers is a list of URLs without anything secret.
func Servers(urls string) string {
	var hosts []string
	for one := range strings.SplitSeq(urls, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil && u.Host != "" {
			hosts = append(hosts, u.Host)
		}
	}
	if len(hosts) == 0 {
		return "(in process)"
	}
	return strings.Join(hosts, ", ")
}

// The connection says what happens to it. After each of these something may have been missed.

func (n *Grid) disconnected(_ *nats.Conn, err error) {
	n.lost.Store(true)
	n.faulty()
	if n.ctx.Err() == nil {
		n.log.Warn("NATS disconnected", "err", err)
	}
}

func (n *Grid) reconnected(conn *nats.Conn) {
	n.faulty()
	n.log.Info("NATS reconnected", "server", conn.ConnectedAddr())
	n.sayNode("hello") // others may have taken this one as gone, and so may it them
	n.missed()
}

func (n *Grid) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	n.log.Warn("NATS reports an error", "err", err)
	n.faulty()
	n.missed()
}

// checkServer refuses servers that cannot do what the grid needs.
func (n *Grid) checkServer() error {
	version := n.conn.ConnectedServerVersion()
	if !newEnough(version) {
		return freshet.Errorf(freshet.Unavailable, "The NATS server at %s has version %s; Freshet needs %d.%d or newer",
			n.conn.ConnectedAddr(), version, minMajor, minMinor)
	}
	n.maxPayload = int(n.conn.MaxPayload())
	if n.maxPayload < minPayload {
		return freshet.Errorf(freshet.Unavailable, "The NATS server at %s takes messages of %d bytes only; set its max_payload to %d or more (1 MB is its default)",
			n.conn.ConnectedAddr(), n.maxPayload, minPayload)
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
