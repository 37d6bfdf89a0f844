package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/settings"
)

// writeCertificate puts a fresh pair for 127.0.0.1 into dir and returns who to trust.
func writeCertificate(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for file, text := range map[string][]byte{"cert.pem": certPEM, "key.pem": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return pool
}

// protocol asks for a path over the client's transport and returns what was spoken.
func protocol(t *testing.T, transport *http.Transport, url string) string {
	t.Helper()
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	answer.Body.Close()
	return answer.Proto
}

func TestPublicListenersSpeakHTTP1AndHTTP2WithAndWithoutTLS(t *testing.T) {
	var h1, h2 http.Protocols
	h1.SetHTTP1(true)
	h2.SetHTTP2(true)
	h2.SetUnencryptedHTTP2(true)

	plain := run(t, nil)
	plain.await("ready")
	dir := t.TempDir()
	pool := writeCertificate(t, dir, "first")
	secure := run(t, func(s *settings.Settings) {
		s.TLS.Certificate, s.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})
	secure.await("ready")

	for _, listener := range []string{"gateway", "subscriber"} {
		for base, trust := range map[string]*tls.Config{
			"http://" + plain.address(listener):   nil,
			"https://" + secure.address(listener): {RootCAs: pool},
		} {
			if got := protocol(t, &http.Transport{Protocols: &h1, TLSClientConfig: trust.Clone()}, base+"/"); got != "HTTP/1.1" {
				t.Errorf("%s: %s", base, got)
			}
			if got := protocol(t, &http.Transport{Protocols: &h2, TLSClientConfig: trust.Clone()}, base+"/"); got != "HTTP/2.0" {
				t.Errorf("%s: %s", base, got)
			}
		}
	}
	if got := protocol(t, &http.Transport{}, "http://"+secure.address("admin")+"/livez"); got != "HTTP/1.1" {
		t.Errorf("the admin listener stays plain, but said %s", got)
	}
}

// TestAnswersOverTLSKeepBrowsersThere, streams too.
func TestAnswersOverTLSKeepBrowsersThere(t *testing.T) {
	dir := t.TempDir()
	pool := writeCertificate(t, dir, "first")
	r := run(t, func(s *settings.Settings) {
		s.TLS.Certificate, s.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})
	topic := r.longTopic(t, "https://"+r.address("gateway"), &tls.Config{RootCAs: pool})
	for _, two := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: two}
		defer transport.CloseIdleConnections()
		for listener, path := range map[string]string{"gateway": "/nowhere", "subscriber": "/v1/topics/" + topic} {
			resp, err := (&http.Client{Transport: transport}).Get("https://" + r.address(listener) + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
				t.Errorf("%s in %s: %q", listener, resp.Proto, got)
			}
		}
	}
	plain := run(t, nil)
	resp, err := client.Get("http://" + plain.address("gateway") + "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("without TLS: %q", got)
	}
}

func TestARenewedCertificateIsTakenWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, "first")
	c, err := loadCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		c.looked = time.Time{} // as if a second had passed
		leaf, err := x509.ParseCertificate(c.current().Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.Subject.CommonName
	}
	later := time.Now()
	touch := func() {
		later = later.Add(time.Minute) // file systems may not tell two writes in a row apart
		for _, file := range []string{"cert.pem", "key.pem"} {
			if err := os.Chtimes(filepath.Join(dir, file), later, later); err != nil {
				t.Fatal(err)
			}
		}
	}
	writeCertificate(t, dir, "second")
	touch()
	if got := name(); got != "second" {
		t.Errorf("still %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch()
	if got := name(); got != "second" {
		t.Errorf("a broken file gave %s", got)
	}
	writeCertificate(t, dir, "third")
	touch()
	if got := name(); got != "third" {
		t.Errorf("after repair still %s", got)
	}
}

func TestABadCertificateIsRefusedAtStart(t *testing.T) {
	r := run(t, func(s *settings.Settings) { s.TLS.Certificate, s.TLS.Key = "/nowhere/cert.pem", "/nowhere/key.pem" })
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), "tls.certificate") {
		t.Errorf("got %v", err)
	}
}
