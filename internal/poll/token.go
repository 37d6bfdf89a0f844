package poll

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/freshet-io/freshet"
)

// tokens keeps access tokens in memory, one for each client of each app, until shortly before they expire.
type tokens struct {
	mu  sync.Mutex
	all map[tokenKey]*token // Guarded by mu.
}

type tokenKey [sha256.Size]byte

// token is the token of one client. Its lock is held while a new one is fetched: the others wait for the same.
type token struct {
	mu      sync.Mutex
	text    string
	renewAt time.Time // zero: never
}

const (
	maxTokens     = 4096 // beyond which those that expired are dropped
	longestMargin = time.Minute
)

func newTokens() *tokens { return &tokens{all: make(map[tokenKey]*token)} }

func keyOf(t *endpoint) tokenKey {
	o := t.credentials.OAuth2
	parts := append([]string{t.appID, o.TokenURL, o.ClientID, o.ClientSecret.Reveal()}, o.Scopes...)
	return sha256.Sum256([]byte(strings.Join(parts, "\x00")))
}

func (ts *tokens) entry(t *endpoint) *token {
	key := keyOf(t)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.all[key] == nil {
		if len(ts.all) >= maxTokens {
			clear(ts.all)
		}
		ts.all[key] = new(token)
	}
	return ts.all[key]
}

// get returns a token for the target, and whether it was made just now.
func (ts *tokens) get(ctx context.Context, c *client, t *endpoint) (text string, fresh bool, err error) {
	e := ts.entry(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text != "" && (e.renewAt.IsZero() || time.Now().Before(e.renewAt)) {
		return e.text, false, nil
	}
	made, err := c.newToken(ctx, t.credentials.OAuth2)
	if err != nil {
		return "", false, err
	}
	e.text, e.renewAt = made.AccessToken, time.Time{}
	if !made.Expiry.IsZero() {
		left := time.Until(made.Expiry)
		e.renewAt = made.Expiry.Add(-min(left/5, longestMargin)) // never while a request is on its way with it
	}
	return e.text, true, nil
}

// drop forgets a token that the target did not accept.
func (ts *tokens) drop(t *endpoint, text string) {
	e := ts.entry(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text == text {
		e.text = ""
	}
}

// newToken asks the token endpoint. Its answers may hold secrets, so errors of the library are not passed on.
func (c *client) newToken(ctx context.Context, o *freshet.OAuth2) (*oauth2.Token, error) {
	endpoint, err := url.Parse(o.TokenURL)
	if err != nil {
		return nil, freshet.Errorf(freshet.SourceUnreachable, "The token URL is not a valid URL")
	}
	config := clientcredentials.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(), TokenURL: o.TokenURL, Scopes: o.Scopes,
	}
	asker := &http.Client{
		Transport:     signedTransport{c, c.transport(authority(endpoint))}, // with the same guard
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	made, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, asker))
	if err == nil {
		return made, nil
	}
	var answered *oauth2.RetrieveError
	var wrapped *url.Error
	switch {
	case errors.As(err, &answered) && answered.Response != nil && answered.Response.StatusCode >= http.StatusInternalServerError:
		return nil, freshet.Errorf(freshet.SourceFailed, "The token endpoint answered with status %d", answered.Response.StatusCode)
	case errors.As(err, &answered):
		return nil, freshet.Errorf(freshet.SourceUnauthorized, "The token endpoint does not accept the client's credentials")
	case errors.As(err, &wrapped):
		return nil, c.unreached(ctx, wrapped.Err)
	}
	return nil, freshet.Errorf(freshet.SourceFailed, "The answer of the token endpoint cannot be understood")
}

// signedTransport says who asks, as polls do.
type signedTransport struct {
	client *client
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t signedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // it is not ours to change
	r.Header.Set("User-Agent", t.client.agent())
	r.Header["Via"] = via
	return t.next.RoundTrip(r)
}
