package manage

import (
	"maps"
	"net/textproto"
	"slices"

	"github.com/freshet-io/freshet"
)

// hiddenValue stands for a secret in answers. In a request it means: as it is.
const hiddenValue = "[hidden]"

// givenOAuth2 is the client credentials grant of a poller, as a request says it.
type givenOAuth2 struct {
	TokenURL     optional[string]   `json:"token_url,omitempty" example:"https://auth.example.com/token" doc:"Where tokens come from; required"`
	ClientID     optional[string]   `json:"client_id,omitempty" example:"freshet" doc:"Required"`
	ClientSecret optional[string]   `json:"client_secret,omitempty" doc:"Required; shown as [hidden], and left out or [hidden] it stays as it is"`
	Scopes       optional[[]string] `json:"scopes,omitempty" nullable:"true" doc:"What to ask for"`
}

// apply returns the grant that the request makes of the one before. The latter is not touched.
func (g *givenOAuth2) apply(before *freshet.OAuth2) *freshet.OAuth2 {
	var next freshet.OAuth2
	if before != nil {
		next = *before
	}
	g.TokenURL.replace(&next.TokenURL)
	g.ClientID.replace(&next.ClientID)
	if g.ClientSecret.Set && (g.ClientSecret.Value != hiddenValue || before == nil) {
		next.ClientSecret = freshet.Secret(g.ClientSecret.Value)
	}
	if next.ClientSecret == hiddenValue {
		next.ClientSecret = "" // there was none to keep; the noun says that one is required
	}
	g.Scopes.replace(&next.Scopes)
	return &next
}

// applyHeaders returns the headers of a request, in the order of their names. Hidden values are those from before.
func applyHeaders(given map[string]string, before []freshet.HeaderField) ([]freshet.HeaderField, error) {
	var fields []freshet.HeaderField
	for _, name := range slices.Sorted(maps.Keys(given)) {
		f := freshet.HeaderField{Name: textproto.CanonicalMIMEHeaderKey(name), Value: freshet.Secret(given[name])}
		if f.Value == hiddenValue {
			i := slices.IndexFunc(before, func(b freshet.HeaderField) bool { return b.Name == f.Name })
			if i < 0 {
				return before, freshet.InvalidField("publisher.config.headers."+f.Name, "has no value yet that could stay")
			}
			f = before[i]
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// oauth2 is the grant as it is shown.
type oauth2 struct {
	TokenURL     string   `json:"token_url" example:"https://auth.example.com/token"`
	ClientID     string   `json:"client_id" example:"freshet"`
	ClientSecret string   `json:"client_secret" example:"[hidden]" doc:"Never shown"`
	Scopes       []string `json:"scopes,omitempty" nullable:"false"`
}

// showCredentials shows what a poller shows to its target, without the secrets.
func showCredentials(c *freshet.Credentials, shown *config) {
	if len(c.Headers) > 0 {
		shown.Headers = make(map[string]string, len(c.Headers))
		for _, h := range c.Headers {
			shown.Headers[h.Name] = hiddenValue
		}
	}
	if o := c.OAuth2; o != nil {
		shown.OAuth2 = &oauth2{TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: hiddenValue, Scopes: o.Scopes}
	}
}
