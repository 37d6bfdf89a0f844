package subscribe_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/subscribe"
)

// signedWorld is a real catalog with two apps whose subscribers may name a URL: one requires signatures, the other does not.
type signedWorld struct {
	*catalog.Catalog
	store     *store.Store
	app, free *freshet.App
	topic     *freshet.Topic
}

func openSignedWorld(t *testing.T, parts *subscribe.Parts) *signedWorld {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	w := &signedWorld{}
	var err error
	w.store, err = store.Open(ctx, store.Location{Dir: t.TempDir()})
	check(err)
	w.Catalog, err = catalog.New(ctx, w.store, parts.Notices.(catalog.Notifier), catalog.Options{
		OpenSignUp: true, TokenLifetime: time.Hour, AdminEmail: freshet.FixedAdminEmail, AdminPassword: freshet.FixedAdminPassword,
		Hashing: catalog.Hashing{MemoryKiB: 8, Passes: 1}, Log: parts.Log,
	})
	check(err)
	admins, err := w.store.Admins(ctx)
	check(err)
	actor := &catalog.Actor{User: admins[0].User}
	w.app, err = w.CreateApp(ctx, actor, freshet.App{Name: "Signed", AutoProvisioningAllowed: true, SignatureRequired: true})
	check(err)
	w.free, err = w.CreateApp(ctx, actor, freshet.App{Name: "Free", AutoProvisioningAllowed: true})
	check(err)
	w.topic, err = w.CreateTopic(ctx, actor, w.app.ID, func(t *freshet.Topic) error {
		t.Name, t.Publisher.Type, t.Publisher.Payload.Type = "Topic", freshet.HTTPPost, freshet.PayloadSnapshot
		return nil
	})
	check(err)
	parts.Catalog = w
	return w
}

func (w *signedWorld) close() error {
	w.Close()
	return w.store.Close()
}

// sign signs a text as the public clients do.
func (w *signedWorld) sign(text string) (stamp, value string) {
	plain, err := base64.StdEncoding.DecodeString(w.app.SignatureKey.Reveal())
	if err != nil {
		panic(err)
	}
	stamp = strconv.FormatInt(time.Now().UnixMilli(), 10)
	mac := hmac.New(sha512.New, plain[36:])
	mac.Write([]byte("GET\n" + stamp + "\n" + text + "\n"))
	return stamp, base64.StdEncoding.EncodeToString(append(plain[:36:36], base64.StdEncoding.EncodeToString(mac.Sum(nil))...))
}

// opened is what a source's stream says that nobody polls: it was let in.
const opened = 50001

// codeOf opens a stream and returns the code of its first event, an error; 0 for any other event.
func (h *harness) codeOf(path string, headers header) int {
	h.t.Helper()
	s := h.get(path, headers)
	defer s.close()
	e, err := s.next()
	for err == nil && e.comment != "" {
		e, err = s.next()
	}
	if err != nil {
		h.t.Fatal(path, err)
	}
	var f struct{ Code int }
	if e.name == "error" {
		if err := json.Unmarshal([]byte(e.data), &f); err != nil {
			h.t.Fatal(err)
		}
	}
	return f.Code
}

func TestASignatureCoversTheWholeOfWhatIsAskedFor(t *testing.T) {
	const doc = "http://api.example.com/doc"
	var w *signedWorld
	opts := options{snapshot: 50 * time.Millisecond, change: func(p *subscribe.Parts) { w = openSignedWorld(t, p) }}
	forEachPath(t, opts, func(t *testing.T, h *harness) {
		defer func() {
			if err := w.close(); err != nil {
				t.Error(err)
			}
		}()
		key := w.app.SubscriberKey.Reveal()
		for name, c := range map[string]struct {
			signed, asked string // KEY and SIGNATURE stand for parameters of ours
			want          int
		}{
			"no query":                    {doc, doc + "?KEY&SIGNATURE", opened},
			"a query":                     {doc + "?a=1", doc + "?a=1&KEY&SIGNATURE", opened},
			"a query that was added":      {doc, doc + "?a=1&KEY&SIGNATURE", 40110},
			"a query that was changed":    {doc + "?a=1", doc + "?a=2&KEY&SIGNATURE", 40110},
			"a query that was cut off":    {doc + "?a=1&b=2", doc + "?a=1&KEY&SIGNATURE", 40110},
			"an ampersand that was added": {doc + "?a=1", doc + "?a=1&KEY&SIGNATURE&", 40110},

			"a parameter of the target's behind ours":   {doc, doc + "?KEY&SIGNATURE&a=1", 40110},
			"… also where the rest is signed":           {doc + "?a=1", doc + "?a=1&KEY&SIGNATURE&b=1", 40110},
			"… also where it is signed":                 {doc + "?a=1", doc + "?KEY&SIGNATURE&a=1", 40110},
			"… in the middle of ours":                   {doc + "?a=1", doc + "?a=1&KEY&b=1&SIGNATURE", 40110},
			"padding, which is the target's, behind it": {doc, doc + "?KEY&SIGNATURE&padding=true", 40110},

			"X-Foo is the target's and signed":         {doc + "?X-Foo=1", doc + "?X-Foo=1&KEY&SIGNATURE", opened},
			"X-Foo that was not signed":                {doc, doc + "?X-Foo=1&KEY&SIGNATURE", 40110},
			"X-Foo behind ours":                        {doc, doc + "?KEY&SIGNATURE&X-Foo=1", 40110},
			"X-Sdfoo is the target's and signed":       {doc + "?X-Sdfoo=1", doc + "?X-Sdfoo=1&KEY&SIGNATURE", opened},
			"X-Auth-Other is the target's and signed":  {doc + "?X-Auth-Other=1", doc + "?X-Auth-Other=1&KEY&SIGNATURE", opened},
			"evs_ is ours":                             {doc + "?a=1", doc + "?a=1&evs_buffer_size_limit=9&KEY&SIGNATURE&evs_preamble=10&EVS_x=1", opened},
			"X-Sd- is ours":                            {doc, doc + "?x-sd-anything=1&KEY&SIGNATURE&X-Sd-Filter=", opened},
			"X-Auth-Sd- is ours":                       {doc, doc + "?X-Auth-Sd-Other=1&KEY&SIGNATURE", opened},
			"a place to resume from is ours":           {doc + "?a=1", doc + "?a=1&KEY&SIGNATURE&lastEventId=abc-12", opened},
			"… by its other name":                      {doc, doc + "?last_event_id=abc-12&KEY&SIGNATURE", opened},
			"… as public clients send it":              {doc, doc + "?KEY&SIGNATURE&evs_last_event_id=abc-12", opened},
			"lastEventId without a place is not":       {doc, doc + "?KEY&SIGNATURE&lastEventId=mine", 40110},
			"… nor last_event_id":                      {doc, doc + "?last_event_id=7&KEY&SIGNATURE", 40110},
			"… which is the target's and signed":       {doc + "?last_event_id=7", doc + "?last_event_id=7&KEY&SIGNATURE", opened},
			"an encoded name of ours is ours":          {doc, doc + "?%58-Sd-Compress=true&KEY&SIGNATURE", opened},
			"text that the transport escaped":          {doc + "?q=é à", doc + "?q=%C3%A9%20%C3%A0&KEY&SIGNATURE", opened},
			"text that was escaped before it was sent": {doc + "?q=%C3%A9", doc + "?q=%C3%A9&KEY&SIGNATURE", opened},

			"a topic's path alone is signed":            {"/v1/topics/TOPIC", "v1/topics/TOPIC?KEY&SIGNATURE", 0},
			"… whatever its query":                      {"/v1/topics/TOPIC", "v1/topics/TOPIC?a=1&KEY&SIGNATURE&b=2&X-Foo=3", 0},
			"… its query is not signed":                 {"/v1/topics/TOPIC?a=1", "v1/topics/TOPIC?a=1&KEY&SIGNATURE", 40110},
			"… and not that of another version's":       {"/latest/topics/TOPIC", "v1/topics/TOPIC?KEY&SIGNATURE", 40110},
			"no signature where one is required":        {doc, doc + "?KEY", 40100},
			"no signature of a topic where one is":      {"", "v1/topics/TOPIC?KEY", 40100},
			"an app that requires none":                 {doc, doc + "?FREE&SIGNATURE", opened},
			"… ignores a query that is not signed":      {doc, doc + "?a=1&FREE&SIGNATURE", opened},
			"… and what follows a parameter of ours":    {doc, doc + "?FREE&SIGNATURE&a=1", opened},
			"… and a signature that is none":            {doc, doc + "?FREE&X-Auth-Sd-S=*", opened},
			"a signature in the header, without query":  {doc, doc + "?HEADER", opened},
			"… covers the query":                        {doc + "?a=1&b=2", doc + "?a=1&b=2HEADER", opened},
			"… and nothing more":                        {doc, doc + "?a=1HEADER", 40110},
			"… with a parameter of ours behind it":      {doc + "?a=1", doc + "?a=1&evs_preamble=1HEADER", opened},
			"… and one of the target's behind that one": {doc + "?a=1", doc + "?a=1&evs_preamble=1&b=1HEADER", 40110},
		} {
			h.post(*w.topic, `{"n":1}`)
			topic := func(s string) string { return strings.ReplaceAll(s, "TOPIC", w.topic.ID) }
			stamp, value := w.sign(topic(c.signed))
			headers := header{}
			asked, inHeader := strings.CutSuffix(c.asked, "HEADER")
			if inHeader {
				headers = header{"X-Sd-Subscriber-Key": key, "X-Auth-Sd-Ts": stamp, "X-Auth-Sd-S": value}
			}
			asked = strings.NewReplacer("KEY", "X-Sd-Subscriber-Key="+key, "FREE", "X-Sd-Subscriber-Key="+w.free.SubscriberKey.Reveal(),
				"SIGNATURE", "X-Auth-Sd-Ts="+stamp+"&X-Auth-Sd-S="+url.QueryEscape(value)).Replace(topic(asked))
			if got := h.codeOf("/"+asked, headers); got != c.want {
				t.Errorf("%s: %s signed, %s asked for: %d, want %d", name, c.signed, c.asked, got, c.want)
			}
		}
	})
}
