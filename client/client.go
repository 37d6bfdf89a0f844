// Package client is the Go client of Freshet: a live document in one call, publishing, and the management API in types.
//
//	c, err := client.New(client.Options{BaseURL: "http://localhost:8000"})
//	for event, err := range c.Subscribe(ctx, topicID, client.SubscribeOptions{Key: key}) {
//		if err != nil {
//			return err // only what trying again cannot mend
//		}
//		fmt.Println(string(event.Document)) // the whole document, always current
//	}
//
// A subscription reconnects by itself, goes on where it stopped, notices connections that died without a word, and applies
// patches exactly: numbers, escapes and the order of members stay as they were published.
//
// What the server refuses is an *[Error]; what ends a stream for good is a *[StreamError]. Calls that may be repeated
// without harm are repeated when the server could not be reached or asked to come back later.
//
// The package deliberately keeps nothing on disk and reads no environment. A Client is safe for concurrent use.
package client

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Where a server listens when nobody says otherwise.
const (
	DefaultBaseURL = "http://localhost:8000"
	subscriberPort = "6080"
	adminPort      = "8001"
)

// Options say how to reach a server. The zero value is for one on this machine with its default ports.
type Options struct {
	// BaseURL is the gateway, with the management and publishing APIs; DefaultBaseURL if empty.
	BaseURL string
	// SubscriberURL is where streams are; by default port 6080 of BaseURL's host.
	SubscriberURL string
	// AdminURL is the gateway's administration; by default port 8001 of BaseURL's host.
	AdminURL string
	// Token is what SignIn gave, for the management API. SignIn sets it too.
	Token string
	// UserAgent names the program in the server's eyes.
	UserAgent string
	// HTTPClient makes the requests; by default one of the package's own. Its Timeout must be 0, since streams do not end.
	HTTPClient *http.Client
	// Retries is how often a call is repeated that may be; 3 by default, negative for never.
	Retries int
	// CallTimeout bounds one attempt at a call, not a stream; 30 s by default.
	CallTimeout time.Duration
}

// Client talks to one server.
type Client struct {
	// Static after New.
	base, subscriber, admin string // without a slash at the end
	userAgent               string
	http                    *http.Client
	retries                 int
	callTimeout             time.Duration

	token atomic.Pointer[string]
}

// New checks the addresses and returns a client. It does not connect.
func New(o Options) (*Client, error) {
	c := &Client{userAgent: o.UserAgent, http: o.HTTPClient, retries: o.Retries, callTimeout: o.CallTimeout}
	var err error
	if c.base, err = cleanURL("BaseURL", o.BaseURL, DefaultBaseURL); err != nil {
		return nil, err
	}
	if c.subscriber, err = cleanURL("SubscriberURL", o.SubscriberURL, otherPort(c.base, subscriberPort)); err != nil {
		return nil, err
	}
	if c.admin, err = cleanURL("AdminURL", o.AdminURL, otherPort(c.base, adminPort)); err != nil {
		return nil, err
	}
	if c.userAgent == "" {
		c.userAgent = "freshet-go"
	}
	if c.http == nil {
		c.http = newHTTPClient()
	}
	if c.retries == 0 {
		c.retries = 3
	}
	if c.callTimeout <= 0 {
		c.callTimeout = 30 * time.Second
	}
	c.SetToken(o.Token)
	return c, nil
}

// SetToken makes the management calls that follow use another token; empty for none.
func (c *Client) SetToken(token string) { c.token.Store(&token) }

// Token is the token that management calls use.
func (c *Client) Token() string { return *c.token.Load() }

// BaseURL is the gateway, without a slash at the end.
func (c *Client) BaseURL() string { return c.base }

// SubscriberURL is where streams are.
func (c *Client) SubscriberURL() string { return c.subscriber }

// AdminURL is the gateway's administration.
func (c *Client) AdminURL() string { return c.admin }

// CloseIdleConnections lets go of connections that are kept for later calls.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// newHTTPClient has a transport of its own, and follows no redirects: a key must not travel to wherever an answer points.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func cleanURL(name, text, otherwise string) (string, error) {
	if text == "" {
		text = otherwise
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("client: " + name + " is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("client: " + name + " must look like http://host:port")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("client: " + name + " must have no user, query or fragment")
	}
	return strings.TrimRight(text, "/"), nil
}

// otherPort is the same host on another port. A path in front of the API says nothing about other listeners.
func otherPort(base, port string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}
