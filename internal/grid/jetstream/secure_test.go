package jetstream_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
)

// authority signs certificates and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue makes name.pem and name.key, good for both ends of a connection on this machine.
func (a *authority) issue(name string) {
	key := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".key", "PRIVATE KEY", der)
}

// runServer runs a NATS server as its operator set it up, and returns where it listens.
func runServer(t *testing.T, change func(*natsd.Options)) string {
	t.Helper()
	o := &natsd.Options{ServerName: t.Name(), Host: "127.0.0.1", Port: natsd.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	change(o)
	s, err := natsd.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	gridtest.Eventually(t, func() bool { return s.ReadyForConnections(100 * time.Millisecond) })
	return s.Addr().String()
}

// works opens a grid and has it store something.
func works(t *testing.T, opts jetstream.Options) {
	t.Helper()
	g := open(t, opts)
	gridtest.Put(t, g, "a", freshet.Position{}, "1")
	if got := gridtest.Body(gridtest.Document(t, g, "a")); got != "1" {
		t.Errorf("got %s", got)
	}
}

// refusedAtOnce expects that nobody waits for what no waiting makes right.
func refusedAtOnce(t *testing.T, opts jetstream.Options, want string) {
	t.Helper()
	opts.StartTimeout = time.Hour
	refusedSoon(t, opts, want)
}

func refusedSoon(t *testing.T, opts jetstream.Options, want string) {
	t.Helper()
	g, err := jetstream.Open(t.Context(), opts)
	if err == nil {
		g.Close()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "t0ken")) {
		t.Errorf("%v shows a secret", err)
	}
}

func TestServersAndNodesProveThemselvesByCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	stranger := newAuthority(t)
	stranger.issue("client")
	address := runServer(t, func(o *natsd.Options) {
		cert, err := tls.LoadX509KeyPair(a.file("server.pem"), a.file("server.key"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AddCert(a.cert)
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 30
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	})
	good := jetstream.Options{CA: a.file("ca.pem"), Certificate: a.file("client.pem"), Key: a.file("client.key")}
	for _, scheme := range []string{"tls://", "nats://"} {
		opts := good
		opts.URL = scheme + address
		works(t, opts)
	}
	opts := good
	opts.URL, opts.CA = "tls://"+address, stranger.file("ca.pem")
	refusedAtOnce(t, opts, "certificate signed by unknown authority")
	opts.CA = a.file("missing.pem")
	refusedAtOnce(t, opts, "missing.pem")
	opts = good
	opts.URL, opts.Certificate, opts.Key = "tls://"+address, "", ""
	opts.StartTimeout = time.Second // all that a client sees is that the server hangs up
	refusedSoon(t, opts, "nats_certificate")
}

func TestNodesSignInToServers(t *testing.T) {
	t.Parallel()
	address := runServer(t, func(o *natsd.Options) { o.Username, o.Password = "freshet", "hunter2" })
	works(t, jetstream.Options{URL: "nats://freshet:hunter2@" + address})
	works(t, jetstream.Options{URL: "nats://" + address, User: "freshet", Password: "hunter2"})
	refusedAtOnce(t, jetstream.Options{URL: "nats://freshet:hunter22@" + address}, "Authorization Violation")
	refusedAtOnce(t, jetstream.Options{URL: "nats://" + address}, "Authorization Violation")

	// The least that an account needs; the handbook says so.
	permissions := func(more ...string) *natsd.SubjectPermission {
		return &natsd.SubjectPermission{Allow: append(more, "freshet.>", "_INBOX.>")}
	}
	address = runServer(t, func(o *natsd.Options) {
		o.Users = []*natsd.User{{Username: "freshet", Password: "hunter2", Permissions: &natsd.Permissions{
			Publish: permissions("$JS.API.>"), Subscribe: permissions(),
		}}}
	})
	works(t, jetstream.Options{URL: "nats://freshet:hunter2@" + address, Prefix: "freshet"})

	address = runServer(t, func(o *natsd.Options) { o.Authorization = "t0ken" })
	works(t, jetstream.Options{URL: "nats://t0ken@" + address})
	refusedAtOnce(t, jetstream.Options{URL: "nats://t0ken2@" + address}, "Authorization Violation")
}

func TestNodesSignInByACredentialsFile(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	address := runServer(t, o.configure)
	works(t, jetstream.Options{URL: "nats://" + address, Credentials: o.credentials(t)})
	refusedAtOnce(t, jetstream.Options{URL: "nats://" + address, Credentials: newOperator(t).credentials(t)}, "Authorization Violation")
	refusedAtOnce(t, jetstream.Options{URL: "nats://" + address, Credentials: filepath.Join(t.TempDir(), "missing.creds")}, "missing.creds")
}

// operator runs servers whose users have signed credentials.
type operator struct {
	claims   *jwt.OperatorClaims
	account  nkeys.KeyPair
	system   string // its account
	resolver *natsd.MemAccResolver
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		key, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return key, public
	}
	o := &operator{resolver: &natsd.MemAccResolver{}}
	key, id := pair(nkeys.CreateOperator)
	o.claims = jwt.NewOperatorClaims(id)
	if _, err := o.claims.Encode(key); err != nil {
		t.Fatal(err)
	}
	store := func(id string, limits jwt.JetStreamLimits) {
		claims := jwt.NewAccountClaims(id)
		claims.Limits.JetStreamLimits = limits
		text, err := claims.Encode(key)
		if err == nil {
			err = o.resolver.Store(id, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o.account, id = pair(nkeys.CreateAccount)
	store(id, jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1})
	_, o.system = pair(nkeys.CreateAccount)
	store(o.system, jwt.JetStreamLimits{})
	return o
}

func (o *operator) configure(opts *natsd.Options) {
	opts.TrustedOperators, opts.AccountResolver, opts.SystemAccount = []*jwt.OperatorClaims{o.claims}, o.resolver, o.system
}

// credentials writes the file of a user whom the operator's account signed.
func (o *operator) credentials(t *testing.T) string {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := user.PublicKey()
	seed, _ := user.Seed()
	text, err := jwt.NewUserClaims(id).Encode(o.account)
	if err != nil {
		t.Fatal(err)
	}
	file, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
