package freshet

import (
	"net/url"
	"strconv"
	"time"
)

// Topic is one document that changes over time, and the publisher that feeds it.
type Topic struct {
	ID        string
	AppID     string
	Name      string
	Publisher Publisher
	CreatedAt time.Time
	UpdatedAt time.Time

	// AutoProvisioned says that subscribers made it by naming its target, and that it goes with the last of them.
	AutoProvisioned bool
}

// PublisherType says how content reaches a topic.
type PublisherType string

// The ways content reaches a topic: we fetch it, or somebody posts it.
const (
	HTTPPoller PublisherType = "http-poller"
	HTTPPost   PublisherType = "http-post"
)

// Publisher is where a topic's content comes from. Only the fields of its type are set; a nil pointer leaves the
// value to the app's defaults.
type Publisher struct {
	Type            PublisherType
	URL             string         // http-poller
	PollEvery       *time.Duration // http-poller
	ForcePublishing *bool          // http-post
	Payload         Payload

	Credentials        // http-poller
	Sealed      string // the credentials as they are stored: only the catalog can read them
}

// PayloadType says how a publication relates to the document before it.
type PayloadType string

// The payload types: the whole document each time, or an array of items that replace their namesakes.
const (
	PayloadSnapshot PayloadType = "snapshot"
	PayloadItem     PayloadType = "item"
)

// Payload is fixed when its topic is created: changing it later would make every held document a lie.
type Payload struct {
	Type       PayloadType
	ItemIDPath ItemPath // only for items
}

// Equal reports whether both describe the same payload.
func (p Payload) Equal(q Payload) bool {
	return p.Type == q.Type && p.ItemIDPath.Equal(q.ItemIDPath)
}

const maxURL = 8 << 10 // bytes

// Validate names every field that is missing, malformed, or belongs to the other publisher type.
func (t *Topic) Validate() error {
	var f faults
	f.checkText("name", t.Name, maxTitle)
	p := &t.Publisher
	switch p.Type {
	case HTTPPoller:
		f.checkTargetURL("publisher.config.url", p.URL)
		f.checkPollEvery("publisher.config.polling_frequency", p.PollEvery)
		f.checkCredentials(&p.Credentials)
		if p.ForcePublishing != nil {
			f.add("publisher.config.force_publishing", "is not a setting of %s", p.Type)
		}
	case HTTPPost:
		if p.URL != "" {
			f.add("publisher.config.url", "is not a setting of %s", p.Type)
		}
		if p.PollEvery != nil {
			f.add("publisher.config.polling_frequency", "is not a setting of %s", p.Type)
		}
		if len(p.Headers) > 0 {
			f.add("publisher.config.headers", "is not a setting of %s", p.Type)
		}
		if p.OAuth2 != nil {
			f.add("publisher.config.oauth2", "is not a setting of %s", p.Type)
		}
	case "":
		f.add("publisher.type", "is required")
	default:
		f.add("publisher.type", "must be %s or %s", HTTPPoller, HTTPPost)
	}
	f.checkPayload(p.Payload)
	return f.err()
}

func (f *faults) checkPayload(p Payload) {
	switch p.Type {
	case PayloadSnapshot:
		if p.ItemIDPath.String() != "" {
			f.add("publisher.payload.item_id_path", "is only for payload.type item")
		}
	case PayloadItem:
		if p.ItemIDPath.String() == "" {
			f.add("publisher.payload.item_id_path", "is required when payload.type is item")
		}
	default:
		f.add("publisher.payload.type", "must be %s or %s", PayloadItem, PayloadSnapshot)
	}
}

func (f *faults) checkTargetURL(field, raw string) {
	if raw == "" {
		f.add(field, "is required")
		return
	}
	if len(raw) > maxURL {
		f.add(field, "is longer than %d bytes", maxURL)
		return
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || hasControl(raw):
		f.add(field, "is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		f.add(field, "must begin with http:// or https://")
	case u.Hostname() == "" || u.Opaque != "":
		f.add(field, "must name a host")
	case !isPort(u.Port()):
		f.add(field, "must have a port from 1 to 65535, or none")
	case u.User != nil:
		// Credentials inside a URL end up in logs and listings; headers are kept secret.
		f.add(field, "must not contain a user name or password")
	case u.Fragment != "":
		f.add(field, "must not contain a fragment")
	}
}

// isPort reports whether a URL can have the port; none is fine.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Effective returns the topic's publisher with every open setting filled from the app, then from the service.
func (t *Topic) Effective(app Defaults) Publisher {
	p := t.Publisher
	switch p.Type {
	case HTTPPoller:
		if p.PollEvery == nil {
			every := app.EffectivePollEvery()
			p.PollEvery = &every
		}
	case HTTPPost:
		if p.ForcePublishing == nil {
			force := app.EffectiveForcePublishing()
			p.ForcePublishing = &force
		}
	}
	return p
}
