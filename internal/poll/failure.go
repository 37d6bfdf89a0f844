package poll

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// One text for everything that keeps us from a connection: subscribers must not learn from us which ports of which
// addresses are open, nor, where the guard keeps them outside, which names exist inside.
const unreachable = "The data source cannot be reached, or its address is not allowed"

// unreached classifies what went wrong before there was an answer.
func (c *client) unreached(ctx context.Context, err error) error {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case isGuarded(err), c.guarded && errors.As(err, &dns):
		return freshet.Wrap(freshet.SourceUnreachable, err, unreachable)
	case errors.As(err, &dns):
		return freshet.Wrap(freshet.SourceUnknownHost, err, "The host name of the data source is not known")
	case isTLS(err):
		return freshet.Wrap(freshet.SourceUnreachable, err, "The TLS connection to the data source failed")
	case errors.As(err, &op) && op.Op == "dial":
		return freshet.Wrap(freshet.SourceUnreachable, err, unreachable)
	case isTimeout(ctx, err):
		return freshet.Wrap(freshet.SourceUnreachable, err, "The data source took too long to answer")
	}
	return freshet.Wrap(freshet.SourceFailed, err, "The data source broke off the connection")
}

func isTimeout(ctx context.Context, err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isTLS(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		host        x509.HostnameError
		authority   x509.UnknownAuthorityError
		invalid     x509.CertificateInvalidError
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &host) ||
		errors.As(err, &authority) || errors.As(err, &invalid) || strings.Contains(err.Error(), "tls: ") ||
		strings.Contains(err.Error(), "TLS handshake") || strings.Contains(err.Error(), "HTTP response to HTTPS client")
}

// refused classifies an answer that is no document.
func refused(resp *http.Response, now time.Time) error {
	e := freshet.Errorf(freshet.SourceFailed, "The data source answered with status %d", resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		e.Kind, e.Msg = freshet.SourceUnauthorized, "The data source does not accept the credentials"
		if saysExpired(resp.Header.Values("WWW-Authenticate")) {
			e.Kind, e.Msg = freshet.SourceExpired, "The data source says that the credentials expired"
		}
	case http.StatusForbidden:
		e.Kind, e.Msg = freshet.SourceForbidden, "The data source refuses these credentials"
	}
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
	return e
}

func saysExpired(challenges []string) bool {
	for _, c := range challenges {
		if strings.Contains(strings.ToLower(c), "expired") {
			return true
		}
	}
	return false
}

// maxRetryAfter bounds what we believe: longer is a mistake, and would outlive its reason.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads the header, in seconds or as a date. 0 says nothing.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return min(time.Duration(min(seconds, uint64(maxRetryAfter/time.Second)))*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(now), maxRetryAfter))
}

func unreadable(msg string) error { return freshet.Errorf(freshet.SourceUnreadable, "%s", msg) }
