package manage

import (
	"maps"
	"strings"

	"github.com/freshet-io/freshet"
)

// signUp makes a new user and signs it in.
func (s *server) signUp() *client {
	s.t.Helper()
	email := strings.ToLower(freshet.NewID()) + "@example.com"
	c := s.stranger()
	c.id = c.call("POST", "/users", userBody(email, nil)).want(201).text("id")
	c.token = c.signIn(email, password).want(200).text("token")
	return c
}

// admin signs in the admin of the first start.
func (s *server) admin() *client {
	s.t.Helper()
	c := s.stranger()
	session := c.signIn(freshet.FixedAdminEmail, freshet.FixedAdminPassword).want(200)
	c.token = session.text("token")
	c.id = strings.TrimPrefix(session.link("user"), "/v1/users/")
	return c
}

func (c *client) signIn(email, password string) *response {
	c.s.t.Helper()
	return c.call("PUT", "/session", map[string]any{"email": email, "password": password})
}

// userBody is a good body for POST /users, with some members replaced.
func userBody(email string, replace map[string]any) map[string]any {
	body := map[string]any{
		"email": email, "password": password, "first_name": "Ada", "last_name": "Lovelace", "language": "en_GB",
	}
	maps.Copy(body, replace)
	return body
}

// newApp makes an app and returns its answer.
func (c *client) newApp() *response {
	c.s.t.Helper()
	return c.call("POST", "/apps", map[string]any{"name": "App " + freshet.NewID()}).want(201)
}

// newTopic makes a topic for posting in the app.
func (c *client) newTopic(appID string) *response {
	c.s.t.Helper()
	return c.call("POST", "/apps/"+appID+"/topics", topicBody("http-post", nil, nil)).want(201)
}

func (c *client) newPoller(appID string, config map[string]any) *response {
	c.s.t.Helper()
	full := map[string]any{"url": "https://example.com/quotes.json"}
	maps.Copy(full, config)
	return c.call("POST", "/apps/"+appID+"/topics", topicBody("http-poller", full, nil)).want(201)
}

func topicBody(kind string, config, payload map[string]any) map[string]any {
	if config == nil {
		config = map[string]any{}
	}
	publisher := map[string]any{"type": kind, "config": config}
	if payload != nil {
		publisher["payload"] = payload
	}
	return map[string]any{"name": "Quotes", "publisher": publisher}
}

// publish makes body the topic's next document.
func (s *server) publish(topicID, body string) freshet.Position {
	at := freshet.Position{Epoch: "e", Version: s.docs[topicID].at.Version + 1}
	s.docs[topicID] = published{body: body, at: at}
	return at
}
