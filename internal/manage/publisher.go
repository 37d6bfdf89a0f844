package manage

import (
	"time"

	"github.com/freshet-io/freshet"
)

// publisherSettings holds the settings of both publisher types; the noun refuses those of the other one.
type publisherSettings struct {
	URL              optional[string] `json:"url,omitempty" example:"https://example.com/quotes.json" doc:"http-poller, required: what to poll"`
	PollingFrequency optional[int64]  `json:"polling_frequency,omitempty" nullable:"true" example:"2000" doc:"http-poller: milliseconds between two polls, 100 at least; by default the app's"`
	ForcePublishing  optional[bool]   `json:"force_publishing,omitempty" nullable:"true" doc:"http-post: publish even when nobody is subscribed; by default the app's"`

	Headers optional[map[string]string] `json:"headers,omitempty" nullable:"true" doc:"http-poller: headers for the target, by name; their values are kept secret and shown as [hidden], which in a request means: as it is"`
	OAuth2  optional[givenOAuth2]       `json:"oauth2,omitempty" nullable:"true" doc:"http-poller: get tokens for the target by the client credentials grant"`
}

func (c *publisherSettings) apply(p *freshet.Publisher) (err error) {
	if c.Headers.Set {
		p.Headers, err = applyHeaders(c.Headers.Value, p.Headers)
	}
	if c.OAuth2.Null {
		p.OAuth2 = nil
	} else if c.OAuth2.Set {
		p.OAuth2 = c.OAuth2.Value.apply(p.OAuth2)
	}
	c.URL.replace(&p.URL)
	if c.PollingFrequency.Set {
		p.PollEvery = milliseconds(c.PollingFrequency.pointer())
	}
	if c.ForcePublishing.Set {
		p.ForcePublishing = c.ForcePublishing.pointer()
	}
	return err
}

type givenPayload struct {
	Type       optional[string] `json:"type,omitempty" enum:"item,snapshot" doc:"By default snapshot"`
	ItemIDPath optional[string] `json:"item_id_path,omitempty" nullable:"true" example:".Identifier.Symbol" doc:"Required for item: the way to an item's identifier; its first character separates the names"`
}

// apply sets what the request names and leaves the rest. A path that is none leaves the path alone.
func (g *givenPayload) apply(p *freshet.Payload) error {
	if g.Type.Set {
		p.Type = freshet.PayloadType(g.Type.Value)
		if g.Type.Null {
			p.Type = freshet.PayloadSnapshot
		}
	}
	if !g.ItemIDPath.Set {
		return nil
	}
	if g.ItemIDPath.Value == "" {
		p.ItemIDPath = freshet.ItemPath{} // the noun says whether one is required
		return nil
	}
	path, err := freshet.ParseItemPath(g.ItemIDPath.Value)
	if err != nil {
		return err
	}
	p.ItemIDPath = path
	return nil
}

func applyPayload(o optional[givenPayload], p *freshet.Payload) error {
	if o.Null {
		*p = freshet.Payload{Type: freshet.PayloadSnapshot}
	}
	return o.Value.apply(p)
}

type newPublisher struct {
	Type    string                 `json:"type" enum:"http-poller,http-post"`
	Config  publisherSettings      `json:"config" doc:"May be {} for http-post"`
	Payload optional[givenPayload] `json:"payload,omitempty" nullable:"true" doc:"Fixed for the life of the topic"`
}

type newTopic struct {
	Name      string       `json:"name" example:"Quotes of Paris"`
	Publisher newPublisher `json:"publisher"`
}

// fill makes the topic what the request says; the catalog says whether that is allowed.
func (n *newTopic) fill(t *freshet.Topic) error {
	t.Name = n.Name
	p := &t.Publisher
	p.Type = freshet.PublisherType(n.Publisher.Type)
	malformed := n.Publisher.Config.apply(p)
	p.Payload.Type = freshet.PayloadSnapshot
	return freshet.Together(malformed, applyPayload(n.Publisher.Payload, &p.Payload))
}

var newTopicExamples = []example{
	{"Polled", map[string]any{"name": "Quotes of Paris", "publisher": map[string]any{
		"type":   "http-poller",
		"config": map[string]any{"url": "https://example.com/quotes.json", "polling_frequency": 2000},
	}}},
	{"Polled with a key", map[string]any{"name": "Quotes of Lyon", "publisher": map[string]any{
		"type": "http-poller",
		"config": map[string]any{
			"url": "https://example.com/quotes.json", "headers": map[string]any{"X-Api-Key": "a secret"},
		},
	}}},
	{"Posted", map[string]any{"name": "Alerts", "publisher": map[string]any{
		"type": "http-post", "config": map[string]any{},
	}}},
	{"Posted items", map[string]any{"name": "Prices", "publisher": map[string]any{
		"type": "http-post", "config": map[string]any{"force_publishing": true},
		"payload": map[string]any{"type": "item", "item_id_path": ".Identifier.Symbol"},
	}}},
}

type publisherPatch struct {
	Type    optional[string]            `json:"type,omitempty" enum:"http-poller,http-post" doc:"Cannot be changed; may be repeated"`
	Config  optional[publisherSettings] `json:"config,omitempty"`
	Payload optional[givenPayload]      `json:"payload,omitempty" nullable:"true" doc:"Cannot be changed; may be repeated"`
}

type topicPatch struct {
	Name      optional[string]         `json:"name,omitempty" example:"Quotes of Lyon"`
	Publisher optional[publisherPatch] `json:"publisher,omitempty"`
}

// change makes the topic what the request says; whether it may become that is the catalog's to say.
func (p *topicPatch) change(t *freshet.Topic) error {
	p.Name.replace(&t.Name)
	if p.Publisher.Null {
		return freshet.InvalidField("publisher", "is required")
	}
	to, from := &t.Publisher, &p.Publisher.Value
	if from.Type.Set {
		to.Type = freshet.PublisherType(from.Type.Value)
	}
	var noConfig error
	if from.Config.Null {
		noConfig = freshet.InvalidField("publisher.config", "is required")
	}
	malformed := from.Config.Value.apply(to)
	return freshet.Together(noConfig, malformed, applyPayload(from.Payload, &to.Payload))
}

type config struct {
	URL              *string `json:"url,omitempty" example:"https://example.com/quotes.json" doc:"http-poller: what is polled"`
	PollingFrequency *int64  `json:"polling_frequency,omitempty" example:"2000" doc:"http-poller: milliseconds between two polls"`
	ForcePublishing  *bool   `json:"force_publishing,omitempty" doc:"http-post: whether a publication counts when nobody is subscribed"`

	Headers map[string]string `json:"headers,omitempty" doc:"http-poller: headers for the target; their values are never shown"`
	OAuth2  *oauth2           `json:"oauth2,omitempty" doc:"http-poller: where tokens for the target come from"`
}

type payload struct {
	Type       string `json:"type" enum:"item,snapshot"`
	ItemIDPath string `json:"item_id_path,omitempty" example:".Identifier.Symbol" doc:"item: the way to an item's identifier"`
}

type publisher struct {
	Type    string  `json:"type" enum:"http-poller,http-post"`
	Config  config  `json:"config" doc:"The settings in force"`
	Payload payload `json:"payload"`
}

type topic struct {
	ID        string    `json:"id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	AppID     string    `json:"app_id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	Name      string    `json:"name" example:"Quotes of Paris"`
	Publisher publisher `json:"publisher"`
	Auto      bool      `json:"auto_provisioned" doc:"Whether subscribers made it by naming its URL, of which the query is not shown; it goes with the last of them"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Links     []link    `json:"links" nullable:"false" doc:"self, app and document"`
}

func showTopic(t *freshet.Topic) topic {
	return topic{
		ID:        t.ID,
		AppID:     t.AppID,
		Name:      t.Name,
		Publisher: showPublisher(&t.Publisher),
		Auto:      t.AutoProvisioned,
		CreatedAt: t.CreatedAt.UTC(),
		UpdatedAt: t.UpdatedAt.UTC(),
		Links: []link{
			linkTo("self", "/topics/%s", t.ID),
			linkTo("app", "/apps/%s", t.AppID),
			linkTo("document", "/topics/%s/document", t.ID),
		},
	}
}

// showPublisher shows a publisher whose open settings the catalog has filled in.
func showPublisher(p *freshet.Publisher) publisher {
	shown := publisher{
		Type:    string(p.Type),
		Config:  config{ForcePublishing: p.ForcePublishing},
		Payload: payload{Type: string(p.Payload.Type), ItemIDPath: p.Payload.ItemIDPath.String()},
	}
	if p.Type == freshet.HTTPPoller {
		shown.Config = config{URL: &p.URL, PollingFrequency: new(p.PollEvery.Milliseconds())}
		showCredentials(&p.Credentials, &shown.Config)
	}
	return shown
}
