// Package demo is what freshet demo shows: a small world of live data (quotes, news, sensors, a slow API), published to a server
// through its public interfaces, and the example pages that follow it.
//
// It deliberately uses nothing that others could not use: everything goes through package client and HTTP. It starts no
// server; whoever calls it brings one. A Demo is safe for concurrent use.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/examples"
)

// Who owns the demo. The password is no secret: a demo keeps nothing and is open to its own machine only.
const (
	Email    = "ada@example.com"
	Password = "correct horse battery"
)

// Guide is everything that somebody needs to use the demo. The example pages read it at /demo.json.
type Guide struct {
	Pages         string            `json:"pages"`
	Gateway       string            `json:"gateway"`
	Subscriber    string            `json:"subscriber"`
	Admin         string            `json:"admin"`
	Email         string            `json:"email"`
	Password      string            `json:"password"`
	SubscriberKey string            `json:"subscriber_key"`
	PublisherKey  string            `json:"publisher_key"`
	Topics        map[string]string `json:"topics"` // ids by name
	API           string            `json:"api"`    // one that nobody publishes: to be polled
}

// The topics of a demo. Hooks is fed by the example that receives webhooks, or by whoever likes to try.
const (
	Quotes  = "Quotes"
	News    = "News"
	Sensors = "Sensors"
	Weather = "Weather"
	Hooks   = "Hooks"
)

// Demo is a running demo.
type Demo struct {
	// Static after New.
	Guide  Guide
	client *client.Client
}

// New signs a user up on the server of c, and makes an app and its topics. pages is where Handler will be.
func New(ctx context.Context, c *client.Client, pages string) (*Demo, error) {
	user := client.NewUser{Email: Email, Password: Password, FirstName: "Ada", LastName: "Lovelace", Language: "en_GB"}
	if _, err := c.CreateUser(ctx, user); err != nil {
		return nil, fmt.Errorf("sign up: %w", err)
	}
	if _, err := c.SignIn(ctx, Email, Password); err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	app, err := c.CreateApp(ctx, client.AppChange{Name: client.Set("Demo"), AutoProvisioningAllowed: client.Set(true)})
	if err != nil {
		return nil, fmt.Errorf("make an app: %w", err)
	}
	d := &Demo{client: c, Guide: Guide{
		Pages: pages, Gateway: c.BaseURL(), Subscriber: c.SubscriberURL(), Admin: c.AdminURL(), Email: Email, Password: Password,
		SubscriberKey: app.SubscriberKey, PublisherKey: app.PublisherKey, Topics: map[string]string{}, API: pages + "/api/weather",
	}}
	for name, publisher := range map[string]client.NewPublisher{
		Quotes:  {Type: freshet.HTTPPost},
		News:    {Type: freshet.HTTPPost},
		Sensors: {Type: freshet.HTTPPost, Payload: &client.Payload{Type: freshet.PayloadItem, ItemIDPath: ".id"}},
		Hooks:   {Type: freshet.HTTPPost},
		Weather: {Type: freshet.HTTPPoller, Config: client.ConfigChange{URL: client.Set(d.Guide.API)}},
	} {
		topic, err := c.CreateTopic(ctx, app.ID, client.NewTopic{Name: name, Publisher: publisher})
		if err != nil {
			return nil, fmt.Errorf("make the topic %s: %w", name, err)
		}
		d.Guide.Topics[name] = topic.ID
	}
	return d, nil
}

// Handler serves the example pages, the guide they read, and an API that is slow and knows no streams.
func (d *Demo) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(examples.Pages))
	mux.HandleFunc("GET /demo.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, d.Guide) })
	mux.HandleFunc("GET /api/weather", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(apiTakes):
			writeJSON(w, weatherAt(time.Now()))
		case <-r.Context().Done():
		}
	})
	return mux
}

// apiTakes is what makes somebody want to stream an API instead of calling it.
const apiTakes = 700 * time.Millisecond

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // fails only when the client is gone
}

// Feed publishes until ctx ends. What goes wrong meanwhile is told and tried again.
func (d *Demo) Feed(ctx context.Context, problem func(error)) {
	var wg sync.WaitGroup
	for _, f := range []struct {
		topic string
		every time.Duration
		next  func(now time.Time) any
	}{
		{Quotes, 400 * time.Millisecond, newMarket().next},
		{News, 2500 * time.Millisecond, newNewsFeed().next},
		{Sensors, 300 * time.Millisecond, newHouse().next},
	} {
		wg.Go(func() { d.publish(ctx, f.topic, f.every, f.next, problem) })
	}
	wg.Wait()
}

func (d *Demo) publish(ctx context.Context, topic string, every time.Duration, next func(time.Time) any, problem func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for now := time.Now(); ; {
		document, err := json.Marshal(next(now))
		if err == nil {
			_, err = d.client.Publish(ctx, d.Guide.Topics[topic], document, client.PublishOptions{Key: d.Guide.PublisherKey})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			problem(fmt.Errorf("publish %s: %w", topic, err))
		}
		select {
		case now = <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
