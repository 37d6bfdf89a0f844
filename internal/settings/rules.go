package settings

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/freshet-io/freshet"
)

const minTokenSecret = 32 // characters; HS256 wants at least as many bytes as its hash has

func checkTokenSecret(s string) error {
	if s != "" && utf8.RuneCountInString(s) < minTokenSecret {
		return refuse("must have at least %d characters", minTokenSecret)
	}
	return nil
}

const minAdminToken = 16 // characters

func checkAdminToken(s string) error {
	if s != "" && utf8.RuneCountInString(s) < minAdminToken {
		return refuse("must have at least %d characters", minAdminToken)
	}
	return nil
}

// checkAdminListener keeps an administration that asks for nothing off the network.
func checkAdminListener(s *Settings, where string) faults {
	var f faults
	if s.Environment != Production || s.Admin.Token != "" || isLoopback(s.Admin.Listen) {
		return f
	}
	f.add(where, "admin.listen", "(%s) can be reached from other machines and production insists on admin.token then; set it, or listen on 127.0.0.1", s.Admin.Listen)
	return f
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host == "localhost" || net.ParseIP(stripZone(host)).IsLoopback()
}

const validHeaders = "empty, or headers such as Authorization: Bearer secret"

// checkHeaders never repeats what it refuses.
func checkHeaders(s string) error {
	if _, ok := ParseHeaders(s); !ok {
		return must("be %s", validHeaders)
	}
	return nil
}

// ParseHeaders reads headers that are separated by commas.
func ParseHeaders(text string) (http.Header, bool) {
	all := http.Header{}
	if strings.TrimSpace(text) == "" {
		return all, true
	}
	for one := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(one, ":")
		field, err := freshet.ParseHeader(strings.TrimSpace(name), strings.TrimSpace(value))
		if !found || err != nil {
			return nil, false
		}
		all.Add(field.Name, field.Value.Reveal())
	}
	return all, true
}

// httpURL accepts the base of an HTTP service, or nothing.
func httpURL() syntax[string] {
	const valid = "empty, or a URL such as http://10.0.0.1:8000"
	s := text("URL", valid)
	s.parse = func(text string) (string, error) {
		u, err := url.Parse(text)
		if text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
			return "", must("be %s", valid)
		}
		return text, nil
	}
	return s
}

func checkAdminPassword(s string) error {
	return fieldRefusal(freshet.ValidatePassword(s), "password")
}

// checkActivationKey looks at the form only; whether the key is good is decided when the server starts.
func checkActivationKey(s string) error {
	if s == "" {
		return nil
	}
	if _, err := freshet.ReadActivation(freshet.Secret(s)); err != nil {
		return refuse("cannot be used. %s", err)
	}
	return nil
}

func activationIssuer() syntax[string] {
	s := optionalText("KEY", "empty, or what freshet activation keygen prints")
	s.parse = func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		if _, err := freshet.ParseActivationIssuer(text); err != nil {
			return "", refuse("%s", err)
		}
		return text, nil
	}
	return s
}

func checkDatabase(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return refuse("must be empty (the embedded database) or a URL such as postgres://user:password@host:5432/freshet")
	}
	return nil
}

const validNATS = "empty (one node alone), embedded, or URLs such as nats://user:password@host:4222,nats://other:4222"

func checkNATS(s string) error {
	if s == "" || s == EmbeddedNATS {
		return nil
	}
	for one := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" {
			return refuse("must be %s", validNATS)
		}
	}
	return nil
}

// subjectPrefix accepts what can stand in front of NATS subjects and stream names.
func subjectPrefix() syntax[string] {
	const valid = "letters, digits, - and _, at most 32"
	s := text("NAME", valid)
	s.parse = func(text string) (string, error) {
		if text == "" || len(text) > 32 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return "", must("be %s", valid)
		}
		return text, nil
	}
	return s
}

// peer accepts the address of another node.
func peer() syntax[string] {
	const valid = "addresses such as node-2:6222"
	s := text("HOST:PORT", valid)
	s.parse = func(text string) (string, error) {
		host, port, err := net.SplitHostPort(text)
		if n, err2 := parseInt(port); err != nil || err2 != nil || host == "" || !isHost(host) || n < 1 || n > 65535 {
			return "", must("be %s", valid)
		}
		return text, nil
	}
	return s
}

// optionalListen accepts an address to listen on, or nothing.
func optionalListen() syntax[string] {
	s := listen()
	strict := s.parse
	s.valid = "empty, or " + s.valid
	s.parse = func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return strict(text)
	}
	return s
}

// checkCluster refuses combinations that cannot work, and says what to set instead.
func checkCluster(s *Settings) (f faults) {
	embedded := s.NATS.Reveal() == EmbeddedNATS
	if !embedded && (len(s.NATSPeers) > 0 || s.NATSListen != "") {
		f.add("", "nats_peers", "and nats_listen are for the embedded server; set nats to embedded")
	}
	if s.NATS != "" && s.Database == "" && !s.Has(RoleManage) {
		f.add("", "roles", "without manage need the database of a node that has it; set database")
	}
	if len(s.NATSPeers) > 0 && s.Database == "" {
		f.add("", "database", "must be set with nats_peers: the nodes of a cluster share one")
	}
	if embedded && len(s.NATSPeers) > 0 && s.NATSSecret == "" && s.Environment == Production {
		f.add("", "nats_secret", "is required in production: without it anybody who reaches nats_cluster_listen can join the cluster")
	}
	if (s.NATSCertificate == "") != (s.NATSKey == "") {
		f.add("", "nats_certificate", "and nats_key belong together; set both or neither")
	}
	return f
}

// email accepts what an account accepts, so that the administrator can sign in like anybody else.
func email() syntax[string] {
	s := text("EMAIL", "an e-mail address")
	s.parse = func(text string) (string, error) {
		if err := fieldRefusal((&freshet.User{Email: text}).Validate(), "email"); err != nil {
			return "", must("be an e-mail address like name@example.com")
		}
		return text, nil
	}
	return s
}

// fieldRefusal takes what a domain rule says about one field.
func fieldRefusal(err error, field string) error {
	if e, ok := errors.AsType[*freshet.Error](err); ok {
		for _, f := range e.Fields {
			if f.Field == field {
				return refuse("%s", f.Message)
			}
		}
	}
	return nil
}

// listen accepts a TCP address to listen on. Port names such as "http" are refused: what they mean differs
// between machines.
func listen() syntax[string] {
	const valid = "an address such as 127.0.0.1:8000, :8000 (every interface) or :0 (any free port)"
	s := text("ADDRESS", valid)
	s.parse = func(text string) (string, error) {
		host, port, err := net.SplitHostPort(text)
		if err != nil || !isHost(host) {
			return "", must("be %s", valid)
		}
		if n, err := parseInt(port); err != nil || n > 65535 {
			return "", must("be %s", valid)
		}
		return text, nil
	}
	return s
}

// isHost is deliberately loose about names: resolving one is the real test, and that happens when listening.
func isHost(host string) bool {
	return !strings.ContainsAny(host, " /@?#\t\n") && (!strings.Contains(host, ":") || net.ParseIP(stripZone(host)) != nil)
}

func stripZone(host string) string {
	host, _, _ = strings.Cut(host, "%")
	return host
}

// checkListeners refuses two listeners on one address here, where the message can name both settings; the system
// could only say that the second one is in use.
func checkListeners(s *Settings, faulty func(key string) bool, where func(key string) string) faults {
	addresses := []struct{ key, address string }{
		{"gateway.listen", s.Gateway.Listen},
		{"admin.listen", s.Admin.Listen},
		{"subscriber.listen", s.Subscriber.Listen},
	}
	var f faults
	for i, a := range addresses {
		for _, b := range addresses[:i] {
			if !faulty(a.key) && !faulty(b.key) && sameAddress(a.address, b.address) {
				f.add(where(a.key), a.key, "(%s) collides with %s (%s); each listener needs a port of its own", a.address, b.key, b.address)
			}
		}
	}
	return f
}

func sameAddress(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	if portA != portB || strings.Trim(portA, "0") == "" {
		return false
	}
	return hostA == hostB || isEveryInterface(hostA) || isEveryInterface(hostB)
}

func isEveryInterface(host string) bool {
	return host == "" || net.ParseIP(host).IsUnspecified()
}

// publicURL accepts what a browser can be told to connect to.
func publicURL() syntax[string] {
	s := optionalText("URL", "empty, or a URL such as https://events.example.com")
	s.parse = func(text string) (string, error) {
		u, err := url.Parse(text)
		if text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.Host, "; ,'\"")) {
			return "", must("be empty or a URL such as https://events.example.com")
		}
		return text, nil
	}
	return s
}
