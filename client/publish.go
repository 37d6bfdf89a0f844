package client

import (
	"context"
	"net/http"
)

// PublishOptions go with a publication.
type PublishOptions struct {
	// Key is the app's publisher key.
	Key string
	// IfMatch publishes only if the newest document has this version; "*" if there is any. An Error with status 412 says that
	// somebody was faster.
	IfMatch string
	// IdempotencyKey makes repeating the publication harmless for 24 hours. With one, a publication whose answer was lost is
	// repeated by itself.
	IdempotencyKey string
}

// Published says what became of a publication.
type Published struct {
	Version  string // of the newest document; empty if it was dropped because nobody is subscribed
	Replayed bool   // an earlier publication with the same IdempotencyKey had this effect
}

// PatchForm is the language of a patch.
type PatchForm string

// The forms of a patch.
const (
	JSONPatch  PatchForm = "application/json-patch+json"  // RFC 6902
	MergePatch PatchForm = "application/merge-patch+json" // RFC 7396
)

// Publish makes document, any JSON, the newest of the topic; an item topic takes an array of items. When it returns without an
// error, the publication is stored and in order.
func (c *Client) Publish(ctx context.Context, topicID string, document []byte, o PublishOptions) (Published, error) {
	return c.publish(ctx, http.MethodPost, topicID, "application/json", document, o)
}

// PatchDocument changes the newest document of the topic.
func (c *Client) PatchDocument(ctx context.Context, topicID string, form PatchForm, patch []byte, o PublishOptions) (Published, error) {
	return c.publish(ctx, http.MethodPatch, topicID, string(form), patch, o)
}

func (c *Client) publish(ctx context.Context, method, topicID, contentType string, body []byte, o PublishOptions) (Published, error) {
	h := http.Header{}
	h.Set("Content-Type", contentType)
	h.Set("X-Sd-Publisher-Key", o.Key)
	if o.IfMatch != "" {
		h.Set("If-Match", entityTag(o.IfMatch))
	}
	if o.IdempotencyKey != "" {
		h.Set("Idempotency-Key", o.IdempotencyKey)
	}
	if body == nil {
		body = []byte{} // so that there is one to refuse
	}
	a, err := c.do(ctx, &call{
		method: method, url: c.base + "/publish/v1/topics/" + escape(topicID), at: c.base,
		header: h, body: body, idempotent: o.IdempotencyKey != "", anonymous: true,
	})
	if err != nil {
		return Published{}, err
	}
	return Published{Version: versionOf(a.header), Replayed: a.header.Get("Idempotent-Replayed") == "true"}, nil
}

func entityTag(version string) string {
	if version == "*" || version[0] == '"' {
		return version
	}
	return `"` + version + `"`
}
