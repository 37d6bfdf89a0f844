// Package natsserver runs a NATS server with JetStream inside the process: the real one, as a library. It serves
// `--nats embedded`, for small clusters without servers of their own, and tests.
//
// It knows nothing of what is kept in it. A Server is safe for concurrent use.
package natsserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/nats-io/nats-server/v2/server"
)

// Options are how a server runs.
type Options struct {
	Name string // unique in the cluster and the same after a restart
	Dir  string // where streams are kept

	Listen  string // address for clients of other processes; empty: only this process connects
	Cluster string // address for the other servers; empty: there are none
	Peers   []string
	Secret  freshet.Secret // what other servers and clients must know; empty: nothing

	MaxPayload int32 // of a message; 0 is 1 MB

	WithoutJetStream bool // for tests of what is said then
	Log              *slog.Logger
}

// user is the name that goes with the secret.
const user = "freshet"

// Server is a running server.
type Server struct {
	nats     *server.Server
	user     string
	password freshet.Secret
	open     bool // to clients of other processes
}

// Start runs a server. It returns once connections are accepted, which says nothing about its peers.
func Start(ctx context.Context, opts Options) (*Server, error) {
	o, err := opts.server()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, freshet.Wrap(freshet.Invalid, err, fmt.Sprintf("The embedded NATS server cannot start: %v", err))
	}
	if opts.Log != nil {
		s.SetLoggerV2(logger{opts.Log}, false, false, false)
	}
	go s.Start()
	for !s.ReadyForConnections(100 * time.Millisecond) {
		if ctx.Err() != nil || !s.Running() {
			s.Shutdown()
			s.WaitForShutdown()
			return nil, freshet.Errorf(freshet.Unavailable, "The embedded NATS server does not start: see the log lines before this one")
		}
	}
	return &Server{nats: s, user: o.Username, password: freshet.Secret(o.Password), open: opts.Listen != ""}, nil
}

// Account returns what clients must present; empty if nothing.
func (s *Server) Account() (user string, password freshet.Secret) { return s.user, s.password }

func (opts *Options) server() (*server.Options, error) {
	o := &server.Options{
		ServerName: opts.Name, JetStream: !opts.WithoutJetStream, StoreDir: filepath.Join(opts.Dir, "nats"),
		NoSigs: true, NoLog: opts.Log == nil, MaxPayload: opts.MaxPayload,
		PingInterval: 5 * time.Second, MaxPingsOut: 2,
	}
	if opts.Secret != "" {
		o.Username, o.Password = user, opts.Secret.Reveal()
	}
	var err error
	switch {
	case opts.Listen != "":
		if o.Host, o.Port, err = address(opts.Listen); err != nil {
			return nil, err
		}
	case opts.Cluster != "":
		// A server with peers listens to clients whether anybody wants it or not. Nobody else shall get in.
		o.Host, o.Port = "127.0.0.1", server.RANDOM_PORT
		if o.Password == "" {
			o.Username, o.Password = user, rand.Text()
		}
	default:
		o.DontListen = true
	}
	if opts.Cluster == "" {
		return o, nil
	}
	if o.Cluster.Host, o.Cluster.Port, err = address(opts.Cluster); err != nil {
		return nil, err
	}
	o.Cluster.Name, o.Cluster.PingInterval = "freshet", 5*time.Second
	if opts.Secret != "" {
		o.Cluster.Username, o.Cluster.Password = user, opts.Secret.Reveal()
	}
	for _, peer := range opts.Peers {
		route := &url.URL{Scheme: "nats", Host: peer}
		if opts.Secret != "" {
			route.User = url.UserPassword(user, opts.Secret.Reveal())
		}
		o.Routes = append(o.Routes, route)
	}
	return o, nil
}

func address(text string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(digits)
	}
	if err != nil {
		return "", 0, freshet.Errorf(freshet.Invalid, "%s is no address to listen on", text)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

// InProcessConn connects to the server without a network.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// URL is where clients of other processes connect; empty if they cannot.
func (s *Server) URL() string {
	if !s.open {
		return ""
	}
	return s.nats.ClientURL()
}

// ClusterAddress is where other servers connect.
func (s *Server) ClusterAddress() string {
	if a := s.nats.ClusterAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Close stops the server after its streams are in files.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// logger passes the server's lines on. Its notices are many and mean little to whoever runs Freshet.
type logger struct{ log *slog.Logger }

func (l logger) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "nats: "+strings.TrimSpace(fmt.Sprintf(format, v...)))
}

func (l logger) warn(format string, v []any) {
	if !strings.Contains(format, "Plaintext passwords") { // they come from a setting that is a secret already
		l.say(slog.LevelWarn, format, v)
	}
}

func (l logger) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l logger) Warnf(format string, v ...any)   { l.warn(format, v) }
func (l logger) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l logger) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l logger) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l logger) Tracef(string, ...any)           {}
