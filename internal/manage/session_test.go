package manage

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// secret is what tokens are signed with in tests that forge some.
var secret = []byte("0123456789abcdef0123456789abcdef")

func withSecret(o *catalog.Options) { o.TokenSecret = secret }

func TestATokenOpensTheAPI(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	c.call("GET", "/users/"+c.id, nil).want(200)
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "Bearer   "} {
		other := s.stranger()
		other.header = http.Header{"Authorization": {scheme + c.token}}
		other.call("GET", "/users/"+c.id, nil).want(200)
	}
}

func TestWithoutAGoodTokenThereIsOnlyUnauthorized(t *testing.T) {
	t.Parallel()
	s := serve(t, setting{catalog: withSecret})
	c := s.signUp()
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		var m jwt.MapClaims = map[string]any{}
		if _, _, err := jwt.NewParser().ParseUnverified(c.token, m); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(m)
		}
		return m
	}
	signed := func(method jwt.SigningMethod, key any, header map[string]any, m jwt.MapClaims) string {
		token := jwt.NewWithClaims(method, m)
		for k, v := range header {
			token.Header[k] = v
		}
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	hs := func(change func(jwt.MapClaims)) string {
		return signed(jwt.SigningMethodHS256, secret, nil, claims(change))
	}
	set := func(name string, value any) string { return hs(func(m jwt.MapClaims) { m[name] = value }) }
	without := func(name string) string { return hs(func(m jwt.MapClaims) { delete(m, name) }) }
	raw := func(header string) string {
		parts := strings.Split(c.token, ".")
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1] + "." + parts[2]
	}
	now := s.now.now()

	// The forger's tools work: an untouched copy is good.
	good := s.stranger()
	good.token = hs(nil)
	good.call("GET", "/apps", nil).want(200)
	good.token = set("exp", float64(now.Add(time.Hour).Unix())+0.5)
	good.call("GET", "/apps", nil).want(200)

	parts := strings.Split(c.token, ".")
	for name, token := range map[string]string{
		"none":                   signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)),
		"None":                   signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, map[string]any{"alg": "None"}, claims(nil)),
		"none with a signature":  signed(jwt.SigningMethodHS256, secret, map[string]any{"alg": "none"}, claims(nil)),
		"no alg":                 raw(`{"typ":"JWT"}`),
		"null alg":               raw(`{"alg":null}`),
		"number alg":             raw(`{"alg":256}`),
		"two algs":               raw(`{"alg":"none","alg":"HS256"}`),
		"HS384":                  signed(jwt.SigningMethodHS384, secret, nil, claims(nil)),
		"HS512":                  signed(jwt.SigningMethodHS512, secret, nil, claims(nil)),
		"RS256 in name":          signed(jwt.SigningMethodHS256, secret, map[string]any{"alg": "RS256"}, claims(nil)),
		"another secret":         signed(jwt.SigningMethodHS256, []byte("another secret, just as long as it"), nil, claims(nil)),
		"empty secret":           signed(jwt.SigningMethodHS256, []byte{}, nil, claims(nil)),
		"kid path, empty secret": signed(jwt.SigningMethodHS256, []byte{}, map[string]any{"kid": "../../dev/null"}, claims(nil)),
		"kid SQL":                signed(jwt.SigningMethodHS256, []byte("x"), map[string]any{"kid": "x' UNION SELECT 'x"}, claims(nil)),
		"jwk":                    signed(jwt.SigningMethodHS256, []byte("x"), map[string]any{"jwk": map[string]any{"kty": "oct", "k": "eA"}}, claims(nil)),
		"jku":                    signed(jwt.SigningMethodHS256, []byte("x"), map[string]any{"jku": "http://example.com/keys"}, claims(nil)),
		"expired":                set("exp", now.Add(-time.Second).Unix()),
		"expires now":            set("exp", now.Unix()),
		"no expiry":              without("exp"),
		"text expiry":            set("exp", "2999-01-01"),
		"number text expiry":     set("exp", "99999999999"),
		"null expiry":            set("exp", nil),
		"not yet":                set("nbf", now.Add(time.Hour).Unix()),
		"from the future":        set("iat", now.Add(time.Hour).Unix()),
		"other issuer":           set("iss", "elsewhere"),
		"no issuer":              without("iss"),
		"other audience":         set("aud", "elsewhere"),
		"no audience":            without("aud"),
		"other subject":          set("sub", freshet.NewID()),
		"no subject":             without("sub"),
		"other session":          set("jti", freshet.NewID()),
		"odd session":            set("jti", "' OR 1=1 --"),
		"NUL session":            set("jti", "\x00"),
		"no session":             without("jti"),
		"flipped signature":      parts[0] + "." + parts[1] + "." + flip(parts[2]),
		"flipped claims":         parts[0] + "." + flip(parts[1]) + "." + parts[2],
		"no signature":           parts[0] + "." + parts[1] + ".",
		"two parts":              parts[0] + "." + parts[1],
		"five parts":             c.token + ".a.b",
		"padded":                 c.token + "=",
		"huge":                   c.token + strings.Repeat("A", 64<<10),
		"garbage":                "garbage",
		"two tokens":             c.token + " " + c.token,
		"NUL":                    c.token + "\x00",
	} {
		forged := s.stranger()
		forged.token = token
		a := forged.call("GET", "/apps", nil)
		if a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: status %d", name, a.status)
		}
	}
	for _, header := range []string{"", "Bearer", "Bearer ", c.token, "Basic " + c.token, "Token " + c.token, "Bearer:" + c.token, "Bearer\t" + c.token} {
		other := s.stranger()
		other.header = http.Header{"Authorization": {header}}
		other.call("GET", "/apps", nil).want(401)
	}
	c.call("GET", "/apps", nil).want(200)
}

// flip changes one character in the middle.
func flip(text string) string {
	i := len(text) / 2
	c := byte('A')
	if text[i] == 'A' {
		c = 'B'
	}
	return text[:i] + string(c) + text[i+1:]
}

func TestATokenEndsWithWhatItStandsFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()

	signedOut := s.signUp()
	signedOut.call("DELETE", "/session", nil).want(204)
	signedOut.call("GET", "/apps", nil).want(401)
	signedOut.call("DELETE", "/session", nil).want(401)

	everywhere, bystander := s.signUp(), s.signUp()
	email := everywhere.call("GET", "/users/"+everywhere.id, nil).want(200).text("email")
	elsewhere := *everywhere
	elsewhere.token = everywhere.signIn(email, password).want(200).text("token")
	everywhere.call("DELETE", "/sessions", nil).want(204)
	everywhere.call("GET", "/apps", nil).want(401)
	elsewhere.call("GET", "/apps", nil).want(401)
	bystander.call("GET", "/apps", nil).want(200)
	everywhere.signIn(email, password).want(200)

	changed := s.signUp()
	email = changed.call("GET", "/users/"+changed.id, nil).want(200).text("email")
	second := *changed
	second.token = changed.signIn(email, password).want(200).text("token")
	changed.call("PATCH", "/users/"+changed.id, map[string]any{"password": "another password", "current_password": password}).want(200)
	changed.call("GET", "/apps", nil).want(401)
	second.call("GET", "/apps", nil).want(401)
	changed.signIn(email, password).want(401)
	changed.signIn(email, "another password").want(200)

	renamed := s.signUp()
	renamed.call("PATCH", "/users/"+renamed.id, map[string]any{"first_name": "Grace"}).want(200)
	renamed.call("GET", "/apps", nil).want(200)

	deleted := s.signUp()
	deleted.call("DELETE", "/users/"+deleted.id, nil).want(204)
	deleted.call("GET", "/apps", nil).want(401)

	disabled := s.signUp()
	email = disabled.call("GET", "/users/"+disabled.id, nil).want(200).text("email")
	admin.call("PATCH", "/admin/users/"+disabled.id, map[string]any{"status": "disabled"}).want(200)
	disabled.call("GET", "/apps", nil).want(401)
	disabled.signIn(email, password).want(401)
	admin.call("PATCH", "/admin/users/"+disabled.id, map[string]any{"status": "active"}).want(200)
	disabled.call("GET", "/apps", nil).want(401) // the old token stays ended
	disabled.signIn(email, password).want(200)

	late := s.signUp()
	s.now.advance(24*time.Hour - time.Second)
	late.call("GET", "/apps", nil).want(200)
	s.now.advance(time.Second)
	late.call("GET", "/apps", nil).want(401)
}

func TestATokenSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	s.restart()
	c.call("GET", "/apps", nil).want(200)

	s.options.catalog = withSecret
	s.restart()
	c.call("GET", "/apps", nil).want(401)
}

func TestSignInAnswersATokenItsEndAndItsUser(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.stranger()
	id := c.call("POST", "/users", userBody("Ada@Example.com", nil)).want(201).text("id")
	for _, email := range []string{"Ada@Example.com", "ada@example.com", "ADA@EXAMPLE.COM"} {
		a := c.signIn(email, password).want(200)
		if got, want := a.text("expires_at"), s.now.now().Add(24*time.Hour).UTC().Format(time.RFC3339); got != want {
			t.Errorf("expires at %s, want %s", got, want)
		}
		if got := a.link("user"); got != "/v1/users/"+id {
			t.Errorf("link to the user: %q", got)
		}
	}
	if email := s.admin().call("GET", "/users/"+id, nil).text("email"); email != "Ada@Example.com" {
		t.Errorf("the e-mail became %q", email)
	}
	c.call("POST", "/users", userBody("aDA@eXAMPLE.COM", nil)).want(409)
}

func TestAnUnknownEMailAndAWrongPasswordLookTheSame(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	email := c.call("GET", "/users/"+c.id, nil).text("email")
	c.token = ""
	wrong := c.signIn(email, "wrong password").want(401)
	for name, other := range map[string]*response{
		"unknown":       c.signIn("nobody@example.com", password),
		"NUL":           c.signIn("a\x00b", password),
		"long":          c.signIn(strings.Repeat("a", 100_000), password),
		"long password": c.signIn(email, strings.Repeat("a", 100_000)),
		"empty":         c.signIn("", ""),
	} {
		other.want(401)
		if string(other.body) != string(wrong.body) || other.header.Get("WWW-Authenticate") != wrong.header.Get("WWW-Authenticate") {
			t.Errorf("%s: %s, but a wrong password: %s", name, other.body, wrong.body)
		}
	}
}

func TestClosedSignUpIsForAdminsOnly(t *testing.T) {
	t.Parallel()
	s := serve(t, setting{catalog: func(o *catalog.Options) { o.OpenSignUp = false }})
	s.stranger().call("POST", "/users", userBody("a@example.com", nil)).want(401)
	admin := s.admin()
	admin.call("POST", "/users", userBody("a@example.com", nil)).want(201)
	user := s.stranger()
	user.token = user.signIn("a@example.com", password).want(200).text("token")
	user.call("POST", "/users", userBody("b@example.com", nil)).want(401)
	if first := admin.call("GET", "/admin/audit", nil).want(200).at("items").([]any)[0]; first.(map[string]any)["action"] != "user.create" {
		t.Errorf("audit: %v", first)
	}
}
