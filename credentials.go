package freshet

import (
	"net/textproto"
	"net/url"
	"strings"
)

// HeaderField is one header of the requests to a target. Its value may be a credential.
type HeaderField struct {
	Name  string // canonical: X-Api-Key
	Value Secret
}

// OAuth2 is how a poller gets tokens for its target: the client credentials grant of RFC 6749.
type OAuth2 struct {
	TokenURL     string
	ClientID     string
	ClientSecret Secret
	Scopes       []string
}

// Credentials are what a poller shows to its target. They are never listed, logged, or stored in clear.
type Credentials struct {
	Headers []HeaderField
	OAuth2  *OAuth2
}

// IsZero reports whether there is nothing to show.
func (c *Credentials) IsZero() bool { return len(c.Headers) == 0 && c.OAuth2 == nil }

const (
	maxHeaders     = 64
	maxHeaderBytes = 16 << 10 // of all names and values
	maxScopes      = 50
)

// unforwardable are headers that no target gets from a subscriber or an app: they belong to the connection, to the
// conversation between us and the target, or to the browser of somebody who did not mean us.
var unforwardable = map[string]bool{
	"Host": true, "Cookie": true, "Cookie2": true, "Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Http2-Settings": true, "Content-Length": true, "Content-Encoding": true,
	"Expect": true, "Accept-Encoding": true, "Via": true, "Forwarded": true, "Range": true, "If-Range": true, "If-Match": true,
	"If-None-Match": true, "If-Modified-Since": true, "If-Unmodified-Since": true, "Last-Event-Id": true,
}

var unforwardablePrefixes = []string{"Proxy-", "X-Sd-", "X-Auth-Sd-", "X-Forwarded-", "X-Real-"}

// MayForward reports whether a target may be sent a header of this name.
func MayForward(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if unforwardable[name] {
		return false
	}
	for _, prefix := range unforwardablePrefixes {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// ParseHeader checks one header for a target. Its errors never repeat the value.
func ParseHeader(name, value string) (HeaderField, error) {
	value = strings.Trim(value, " \t")
	switch {
	case !isToken(name):
		return HeaderField{}, Errorf(Invalid, "A header has a name that no header can have")
	case !isFieldValue(value):
		return HeaderField{}, Errorf(Invalid, "The value of the header %s has characters that no header can have", name)
	}
	return HeaderField{Name: textproto.CanonicalMIMEHeaderKey(name), Value: Secret(value)}, nil
}

// isToken follows RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func (f *faults) checkCredentials(c *Credentials) {
	const field = "publisher.config.headers"
	if len(c.Headers) > maxHeaders {
		f.add(field, "has more than %d headers", maxHeaders)
	}
	total, seen := 0, map[string]bool{}
	for _, h := range c.Headers {
		total += len(h.Name) + len(h.Value)
		name := textproto.CanonicalMIMEHeaderKey(h.Name)
		switch {
		case !isToken(h.Name):
			f.add(field, "has a name that no header can have")
		case !MayForward(name):
			f.add(field+"."+name, "cannot be set")
		case !isFieldValue(h.Value.Reveal()):
			f.add(field+"."+name, "has characters that no header can have")
		case seen[name]:
			f.add(field+"."+name, "is there twice")
		}
		seen[name] = true
	}
	if total > maxHeaderBytes {
		f.add(field, "is longer than %d bytes", maxHeaderBytes)
	}
	if c.OAuth2 != nil {
		f.checkOAuth2("publisher.config.oauth2", c.OAuth2)
		if seen["Authorization"] {
			f.add(field+".Authorization", "cannot be set together with oauth2")
		}
	}
}

func (f *faults) checkOAuth2(field string, o *OAuth2) {
	f.checkTargetURL(field+".token_url", o.TokenURL)
	if o.ClientID == "" {
		f.add(field+".client_id", "is required")
	}
	if o.ClientSecret == "" {
		f.add(field+".client_secret", "is required")
	}
	if len(o.ClientID)+len(o.ClientSecret) > maxHeaderBytes {
		f.add(field, "is longer than %d bytes", maxHeaderBytes)
	}
	if len(o.Scopes) > maxScopes {
		f.add(field+".scopes", "has more than %d scopes", maxScopes)
	}
	for _, scope := range o.Scopes {
		if scope == "" || strings.ContainsAny(scope, " \"\\") || !isFieldValue(scope) {
			f.add(field+".scopes", "has a scope that no scope can be")
			break
		}
	}
}

// CheckTarget says what is wrong with the URL of a data source that a subscriber names.
func CheckTarget(raw string) error {
	var f faults
	f.checkTargetURL("target", raw)
	if len(f) == 0 {
		return nil
	}
	return Errorf(Invalid, "The target URL %s", f[0].Message)
}

const maxTargetHosts = 100

// checkTargetHosts checks an app's list of hosts that its pollers may reach.
func (f *faults) checkTargetHosts(field string, hosts []string) {
	if len(hosts) > maxTargetHosts {
		f.add(field, "has more than %d hosts", maxTargetHosts)
		return
	}
	for _, host := range hosts {
		name := strings.TrimPrefix(host, "*.")
		u, err := url.Parse("http://" + name)
		bare := err == nil && u.Host == name && u.Port() == "" && !strings.ContainsAny(name, "*@/?#% ") && !hasControl(name)
		if name == "" || !bare || len(name) > 255 {
			f.add(field, "must have host names such as api.example.com or *.example.com, without ports")
			return
		}
	}
}

// AllowsTarget reports whether pollers of the app may reach the host; an empty list allows every host. "*." stands for one
// or more names in front.
func (a *App) AllowsTarget(host string) bool { return AllowsHost(a.AllowedTargetHosts, host) }

// AllowsHost is AllowsTarget for the list alone.
func AllowsHost(allowed []string, host string) bool {
	if len(allowed) == 0 {
		return true
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	for _, pattern := range allowed {
		pattern = strings.ToLower(strings.Trim(pattern, "[]"))
		if suffix, wild := strings.CutPrefix(pattern, "*"); wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix) {
			return true
		}
		if host == strings.TrimSuffix(pattern, ".") {
			return true
		}
	}
	return false
}
