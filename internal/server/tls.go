package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// certificate is a key pair in two files that are read again when they change, so that renewing it needs no restart.
// It is safe for concurrent use.
type certificate struct {
	// Static after loadCertificate.
	certFile, keyFile string
	log               *slog.Logger

	// Guarded by mu.
	mu      sync.Mutex
	pair    *tls.Certificate
	changed [2]time.Time // of the files, when the pair was read
	looked  time.Time
}

// lookAgain is how often handshakes look at the files.
const lookAgain = time.Second

func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, freshet.Wrap(freshet.Invalid, err, "The files of tls.certificate and tls.key cannot be used")
	}
	return c, nil
}

// config is for a listener that speaks HTTP/2 and HTTP/1.1.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// current returns the pair. Files that cannot be read, or do not fit together because they are just being replaced, leave
// the old pair in use.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookAgain {
		c.looked = now
		if changed, err := c.times(); err == nil && changed != c.changed {
			if err := c.read(); err != nil {
				c.log.Warn("certificate not replaced; the old one stays in use", "file", c.certFile, "err", err)
			} else {
				c.log.Info("certificate replaced", "file", c.certFile)
			}
		}
	}
	return c.pair
}

// read takes the times first: files that change meanwhile are then read once more.
func (c *certificate) read() error {
	changed, err := c.times()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.pair, c.changed = &pair, changed
	return nil
}

func (c *certificate) times() (changed [2]time.Time, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return changed, fmt.Errorf("look at the certificate: %w", err)
		}
		changed[i] = info.ModTime()
	}
	return changed, nil
}
