package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// Topic is one document that changes over time.
type Topic struct {
	ID        string    `json:"id"`
	AppID     string    `json:"app_id"`
	Name      string    `json:"name"`
	Publisher Publisher `json:"publisher"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Links     []Link    `json:"links,omitempty"`
}

// Publisher is where a topic's content comes from, with the settings in force.
type Publisher struct {
	Type    freshet.PublisherType `json:"type"`
	Config  PublisherConfig       `json:"config"`
	Payload Payload               `json:"payload"`
}

// PublisherConfig has the settings of the publisher's type only.
type PublisherConfig struct {
	URL              *string `json:"url,omitempty"`
	PollingFrequency *int64  `json:"polling_frequency,omitempty"` // milliseconds
	ForcePublishing  *bool   `json:"force_publishing,omitempty"`
}

// Payload says how publications make up the document.
type Payload struct {
	Type       freshet.PayloadType `json:"type"`
	ItemIDPath string              `json:"item_id_path,omitempty"`
}

// NewTopic is what making a topic takes. A zero Payload is that of snapshots.
type NewTopic struct {
	Name      string       `json:"name"`
	Publisher NewPublisher `json:"publisher"`
}

// NewPublisher is where the content of a topic shall come from.
type NewPublisher struct {
	Type    freshet.PublisherType `json:"type"`
	Config  ConfigChange          `json:"config"`
	Payload *Payload              `json:"payload,omitempty"`
}

// ConfigChange changes what is set in it. Headers are for the target of an http-poller.
type ConfigChange struct {
	URL              Value[string]            `json:"url,omitzero"`
	PollingFrequency Value[int64]             `json:"polling_frequency,omitzero"` // milliseconds
	ForcePublishing  Value[bool]              `json:"force_publishing,omitzero"`
	Headers          Value[map[string]string] `json:"headers,omitzero"`
}

// TopicChange changes what is set in it. The publisher's type and payload are for life.
type TopicChange struct {
	Name      Value[string]          `json:"name,omitzero"`
	Publisher Value[PublisherChange] `json:"publisher,omitzero"`
}

// PublisherChange changes the settings of a publisher.
type PublisherChange struct {
	Config Value[ConfigChange] `json:"config,omitzero"`
}

// CreateTopic makes a topic in an app.
func (c *Client) CreateTopic(ctx context.Context, appID string, t NewTopic) (*Topic, error) {
	return ask[Topic](ctx, c, http.MethodPost, "/apps/"+escape(appID)+"/topics", t)
}

// Topics lists the topics of an app.
func (c *Client) Topics(ctx context.Context, appID string) iter.Seq2[Topic, error] {
	return list[Topic](ctx, c, "/apps/"+escape(appID)+"/topics")
}

// Topic reads a topic.
func (c *Client) Topic(ctx context.Context, id string) (*Topic, error) {
	return ask[Topic](ctx, c, http.MethodGet, "/topics/"+escape(id), nil)
}

// UpdateTopic changes a topic.
func (c *Client) UpdateTopic(ctx context.Context, id string, change TopicChange) (*Topic, error) {
	return ask[Topic](ctx, c, http.MethodPatch, "/topics/"+escape(id), change)
}

// DeleteTopic deletes a topic; its streams end.
func (c *Client) DeleteTopic(ctx context.Context, id string) error {
	return c.manage(ctx, http.MethodDelete, "/topics/"+escape(id), nil, nil)
}

// RefreshTopic makes the server poll the target of an http-poller topic now.
func (c *Client) RefreshTopic(ctx context.Context, id string) error {
	return c.manage(ctx, http.MethodPost, "/topics/"+escape(id)+"/refresh", nil, nil)
}

// Document reads the current document of a topic and its version, for If-Match. It is an Error with status 404 while nothing
// was published.
func (c *Client) Document(ctx context.Context, topicID string) (document []byte, version string, err error) {
	k := &call{method: http.MethodGet, url: c.base + "/api/v1/topics/" + escape(topicID) + "/document", at: c.base, idempotent: true}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, "", err
	}
	return a.body, versionOf(a.header), nil
}

// Explain asks why a topic delivers what it delivers. The answer is for people, in the server's own words.
func (c *Client) Explain(ctx context.Context, topicID string) (json.RawMessage, error) {
	return askRaw(ctx, c, "/topics/"+escape(topicID)+"/explain")
}

// ExplainConnection asks why a live connection gets what it gets, as an admin. The answer is for people, in the server's own words.
func (c *Client) ExplainConnection(ctx context.Context, connectionID string) (json.RawMessage, error) {
	return askRaw(ctx, c, "/admin/connections/"+escape(connectionID)+"/explain")
}

// TopicUsage asks what a topic moved, hour by hour, in the server's own words.
func (c *Client) TopicUsage(ctx context.Context, topicID string) (json.RawMessage, error) {
	return askRaw(ctx, c, "/topics/"+escape(topicID)+"/usage")
}

// AppUsage asks what the topics of an app moved, hour by hour, in the server's own words.
func (c *Client) AppUsage(ctx context.Context, appID string) (json.RawMessage, error) {
	return askRaw(ctx, c, "/apps/"+escape(appID)+"/usage")
}

// versionOf reads an ETag, also one that a proxy weakened.
func versionOf(h http.Header) string {
	return strings.Trim(strings.TrimPrefix(h.Get("ETag"), "W/"), `"`)
}
