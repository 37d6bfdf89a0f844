package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
)

func (w *world) provider(change func(*freshet.App)) owner {
	w.t.Helper()
	o := w.owner()
	var err error
	o.app, err = w.UpdateApp(w.t.Context(), o.actor, o.app.ID, func(a *freshet.App) {
		a.AutoProvisioningAllowed = true
		if change != nil {
			change(a)
		}
	})
	w.check(err)
	return o
}

func sourceAsk(key freshet.Key, url string, headers ...string) SubscribeAsk {
	ask := SubscribeAsk{Key: key.Reveal(), Source: &SourceAsk{URL: url}}
	for i := 0; i+1 < len(headers); i += 2 {
		ask.Source.Headers = append(ask.Source.Headers, freshet.HeaderField{Name: headers[i], Value: freshet.Secret(headers[i+1])})
	}
	return ask
}

func (w *world) provide(ask SubscribeAsk) *freshet.Topic {
	w.t.Helper()
	g, err := w.Provision(w.t.Context(), ask)
	w.check(err)
	return &g.Topic
}

func TestATopicIsItsAppItsURLAndWhatIsShownToTheTarget(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada, eve := w.provider(nil), w.provider(nil)
	const url = "https://api.example.com/a?x=1&y=2"
	key := ada.app.SubscriberKey
	first := w.provide(sourceAsk(key, url, "Authorization", "Basic 1", "X-B", "2"))
	if again := w.provide(sourceAsk(key, url, "X-B", "2", "Authorization", "Basic 1")); again.ID != first.ID {
		t.Error("the same in another order is another topic")
	}
	seen := map[string]string{first.ID: "first"}
	for name, ask := range map[string]SubscribeAsk{
		"another app":         sourceAsk(eve.app.SubscriberKey, url, "Authorization", "Basic 1", "X-B", "2"),
		"no key":              sourceAsk("", url, "Authorization", "Basic 1", "X-B", "2"),
		"another credential":  sourceAsk(key, url, "Authorization", "Basic 2", "X-B", "2"),
		"no credential":       sourceAsk(key, url, "X-B", "2"),
		"a value that shifts": sourceAsk(key, url, "Authorization", "Basic 1X-B", "2", ""),
		"another order":       sourceAsk(key, "https://api.example.com/a?y=2&x=1", "Authorization", "Basic 1", "X-B", "2"),
		"another spelling":    sourceAsk(key, "https://api.example.com/a?x=%31&y=2", "Authorization", "Basic 1", "X-B", "2"),
	} {
		topic := w.provide(ask)
		if other := seen[topic.ID]; other != "" {
			t.Errorf("%s is the same topic as %s", name, other)
		}
		seen[topic.ID] = name
		if !freshet.IsID(topic.ID) || !topic.AutoProvisioned {
			t.Errorf("%s: %+v", name, topic)
		}
	}
	if err := w.reopen(nil); err != nil {
		t.Fatal(err)
	}
	if again := w.provide(sourceAsk(key, url, "Authorization", "Basic 1", "X-B", "2")); again.ID != first.ID {
		t.Error("another node gives it another identifier")
	}
}

func TestWhoMayProvision(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	yes, no := w.provider(nil), w.owner()
	listed := w.provider(func(a *freshet.App) { a.AllowedTargetHosts = []string{"*.example.com", "10.0.0.1"} })
	signed := w.provider(func(a *freshet.App) { a.SignatureRequired = true })
	for name, test := range map[string]struct {
		ask  SubscribeAsk
		want freshet.Kind
	}{
		"not allowed":      {sourceAsk(no.app.SubscriberKey, "http://x.example.com/"), freshet.Unauthenticated},
		"unknown key":      {sourceAsk(freshet.NewKey(freshet.SubscriberKey), "http://x.example.com/"), freshet.UnknownCredential},
		"publisher key":    {sourceAsk(yes.app.PublisherKey, "http://x.example.com/"), freshet.UnknownCredential},
		"not listed":       {sourceAsk(listed.app.SubscriberKey, "http://example.org/"), freshet.SourceUnreachable},
		"the bare domain":  {sourceAsk(listed.app.SubscriberKey, "http://example.com/"), freshet.SourceUnreachable},
		"a look-alike":     {sourceAsk(listed.app.SubscriberKey, "http://xexample.com/"), freshet.SourceUnreachable},
		"not signed":       {sourceAsk(signed.app.SubscriberKey, "http://x.example.com/"), freshet.Unauthenticated},
		"no host":          {sourceAsk(yes.app.SubscriberKey, "http:///x"), freshet.Invalid},
		"user name":        {sourceAsk(yes.app.SubscriberKey, "http://a:b@example.com/"), freshet.Invalid},
		"fragment":         {sourceAsk(yes.app.SubscriberKey, "http://example.com/#x"), freshet.Invalid},
		"port out of line": {sourceAsk(yes.app.SubscriberKey, "http://example.com:99999/"), freshet.Invalid},
		"another scheme":   {sourceAsk(yes.app.SubscriberKey, "ftp://example.com/"), freshet.Invalid},
	} {
		_, err := w.Provision(t.Context(), test.ask)
		wantKind(t, name, err, test.want)
	}
	for _, host := range []string{"a.example.com", "A.B.Example.Com", "10.0.0.1"} {
		w.provide(sourceAsk(listed.app.SubscriberKey, "http://"+host+":8080/x"))
	}
	w.check(w.reopen(func(o *Options) { o.Production, o.AdminPassword = true, "something else" }))
	_, err := w.Provision(t.Context(), sourceAsk("", "http://x.example.com/"))
	wantKind(t, "no key in production", err, freshet.Unauthenticated)
}

func TestSubscribersMakeNoMoreTopicsThanTheAppMayHave(t *testing.T) {
	t.Parallel()
	w := openWorld(t, func(o *Options) { o.ProvisionedTopics = 3 })
	ada, eve := w.provider(nil), w.provider(nil)
	before, err := w.Topics(t.Context(), ada.actor, ada.app.ID, Page{Limit: 10})
	w.check(err)
	for n := before.Total; n < 3; n++ {
		w.provide(sourceAsk(ada.app.SubscriberKey, fmt.Sprintf("http://example.com/%d", n)))
	}
	_, err = w.Provision(t.Context(), sourceAsk(ada.app.SubscriberKey, "http://example.com/more"))
	wantKind(t, "one more", err, freshet.ConnectionLimit)
	last := w.provide(sourceAsk(ada.app.SubscriberKey, "http://example.com/2")) // those that are there serve on
	w.provide(sourceAsk(eve.app.SubscriberKey, "http://example.com/more"))
	nobody := func(context.Context) (bool, error) { return false, nil }
	w.check(w.Retire(t.Context(), last.ID, nobody))
	w.provide(sourceAsk(ada.app.SubscriberKey, "http://example.com/more"))
}

func TestAnAutoProvisionedTopicBelongsToThoseWhoNameItsSource(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.provider(nil)
	ask := sourceAsk(ada.app.SubscriberKey, "http://x.example.com/?key=canary-query", "Authorization", "canary-header")
	topic := w.provide(ask)
	ask.TopicID = topic.ID
	if _, err := w.MaySubscribe(t.Context(), ask); err != nil {
		t.Error(err)
	}
	byID := SubscribeAsk{TopicID: topic.ID, Key: ask.Key}
	_, err := w.MaySubscribe(t.Context(), byID)
	wantKind(t, "by its identifier", err, freshet.TopicNotFound)
	_, err = w.UpdateTopic(t.Context(), ada.actor, TopicRef{ID: topic.ID}, func(t *freshet.Topic) error { t.Name = "x"; return nil })
	wantKind(t, "changing it", err, freshet.Conflict)
	shown, err := w.Topic(t.Context(), ada.actor, TopicRef{ID: topic.ID})
	w.check(err)
	if shown.Publisher.URL != "http://x.example.com/" || len(shown.Publisher.Headers) > 0 || strings.Contains(shown.Name, "canary") {
		t.Errorf("its owner sees %+v", shown)
	}
	source, err := w.Source(t.Context(), topic.ID)
	w.check(err)
	if p := source.Topic.Publisher; p.URL != ask.Source.URL || len(p.Headers) != 1 || p.Headers[0].Value.Reveal() != "canary-header" {
		t.Errorf("its poller asks for %s with %d headers", p.URL, len(p.Headers))
	}
	_, err = w.UpdateApp(t.Context(), ada.actor, ada.app.ID, func(a *freshet.App) { a.AutoProvisioningAllowed = false })
	w.check(err)
	_, err = w.MaySubscribe(t.Context(), ask)
	wantKind(t, "when the app does not allow it any more", err, freshet.Unauthenticated)
}

func TestCredentialsAreNowhereInTheDatabaseInClear(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.provider(nil)
	w.provide(sourceAsk(ada.app.SubscriberKey, "http://x.example.com/?key=canary-one", "Authorization", "canary-two"))
	made, err := w.CreateTopic(t.Context(), ada.actor, ada.app.ID, func(topic *freshet.Topic) error {
		every := freshet.DefaultPollEvery
		topic.Name, topic.Publisher = "T", freshet.Publisher{
			Type: freshet.HTTPPoller, URL: "http://x.example.com/", PollEvery: &every, Payload: freshet.Payload{Type: freshet.PayloadSnapshot},
			Credentials: freshet.Credentials{
				Headers: []freshet.HeaderField{{Name: "X-Key", Value: "canary-three"}},
				OAuth2:  &freshet.OAuth2{TokenURL: "http://x.example.com/", ClientID: "id", ClientSecret: "canary-four"},
			}}
		return nil
	})
	w.check(err)
	_, err = w.UpdateTopic(t.Context(), ada.actor, TopicRef{ID: made.ID}, func(t *freshet.Topic) error { t.Name = "U"; return nil })
	w.check(err)
	source, err := w.Source(t.Context(), made.ID)
	w.check(err)
	if source.Topic.Publisher.OAuth2.ClientSecret.Reveal() != "canary-four" || source.Topic.Publisher.Headers[0].Value.Reveal() != "canary-three" {
		t.Error("a change of the name lost the credentials")
	}
	// The rows themselves, as anybody with the database sees them.
	topics, err := w.store.PollerTopics(t.Context(), "", 10)
	w.check(err)
	for _, topic := range topics {
		if p := topic.Publisher; strings.Contains(p.Sealed+p.URL+topic.Name, "canary") || p.Sealed == "" || len(p.Headers) > 0 {
			t.Errorf("a row holds %+v", topic)
		}
	}
}

func TestASealFitsItsTopicAndItsSecretOnly(t *testing.T) {
	t.Parallel()
	one, err := newSeals([]byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := newSeals([]byte("two"))
	if err != nil {
		t.Fatal(err)
	}
	topic := freshet.Topic{ID: "a", Publisher: freshet.Publisher{Credentials: freshet.Credentials{Headers: []freshet.HeaderField{{Name: "X", Value: "canary"}}}}}
	if err := one.seal(&topic, ""); err != nil {
		t.Fatal(err)
	}
	moved := topic
	moved.ID = "b"
	cut := topic
	cut.Publisher.Sealed = cut.Publisher.Sealed[:10]
	for name, try := range map[string]func() (string, error){
		"another topic":  func() (string, error) { return one.open(&moved) },
		"another secret": func() (string, error) { other := topic; return two.open(&other) },
		"cut off":        func() (string, error) { return one.open(&cut) },
	} {
		if _, err := try(); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := one.open(&topic); err != nil || topic.Publisher.Headers[0].Value.Reveal() != "canary" {
		t.Errorf("the right one: %v", err)
	}
}

func TestRetiringYieldsToWhoeverComesMeanwhile(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.provider(nil)
	ask := sourceAsk(ada.app.SubscriberKey, "http://x.example.com/", "Authorization", "secret")
	topic := w.provide(ask)
	exists := func() bool {
		_, err := w.Source(t.Context(), topic.ID)
		return err == nil
	}
	answers := func(all ...bool) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) {
			answer := all[0]
			all = all[1:]
			return answer, nil
		}
	}
	w.check(w.Retire(t.Context(), topic.ID, answers(true)))
	if !exists() {
		t.Error("retired although somebody is there")
	}
	w.check(w.Retire(t.Context(), topic.ID, answers(false, true)))
	if !exists() {
		t.Error("somebody came while it was retired, and it is gone")
	}
	if source, err := w.Source(t.Context(), topic.ID); err != nil || len(source.Topic.Publisher.Headers) != 1 {
		t.Error("it came back without its credentials")
	}
	doubts := 0
	inDoubt := func(context.Context) (bool, error) { // which begins after the first answer
		if doubts++; doubts == 1 {
			return false, nil
		}
		return false, grid.ErrDoubt
	}
	w.check(w.Retire(t.Context(), topic.ID, inDoubt))
	if !exists() {
		t.Error("it was not certain any more that nobody is there, and it is gone")
	}
	if err := w.Retire(t.Context(), topic.ID, inDoubt); !errors.Is(err, grid.ErrDoubt) || !exists() {
		t.Errorf("it is not certain that nobody is there: got %v", err)
	}
	w.check(w.Retire(t.Context(), topic.ID, answers(false, false)))
	if exists() {
		t.Error("it stays although nobody is there")
	}
	w.check(w.Retire(t.Context(), topic.ID, answers(false, false)))
	w.check(w.Retire(t.Context(), ada.topic.ID, answers(false, false)))
	if _, err := w.Topic(t.Context(), ada.actor, TopicRef{ID: ada.topic.ID}); err != nil {
		t.Error("a topic that was made by hand was retired")
	}
}

func TestRefreshReachesWhoeverPolls(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada, eve := w.provider(nil), w.owner()
	topic := w.provide(sourceAsk(ada.app.SubscriberKey, "http://x.example.com/"))
	var got []grid.Notice
	defer w.grid.OnNotice(func(n grid.Notice) { got = append(got, n) })()
	w.check(w.Refresh(t.Context(), ada.actor, TopicRef{ID: topic.ID}))
	if len(got) != 1 || got[0] != (grid.Notice{Scope: grid.ScopePoll, ID: topic.ID}) {
		t.Errorf("notices: %v", got)
	}
	wantKind(t, "a posted topic", w.Refresh(t.Context(), ada.actor, TopicRef{ID: ada.topic.ID}), freshet.Conflict)
	wantKind(t, "another's", w.Refresh(t.Context(), eve.actor, TopicRef{ID: topic.ID}), freshet.NotFound)
	w.check(w.Refresh(t.Context(), w.admin(), TopicRef{ID: topic.ID}))
	record, err := w.Audit(t.Context(), w.admin(), Page{Limit: 10})
	w.check(err)
	if len(record.Items) != 1 || record.Items[0].Action != "topic.refresh" || record.Items[0].Subject != topic.ID {
		t.Errorf("on record: %+v", record.Items)
	}
}

func TestWhoMayNotFollowAURLMakesNoTopic(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.provider(func(a *freshet.App) { a.SignatureRequired = true })
	topics := func() (n int64) {
		w.check(w.store.Update(t.Context(), func(tx *store.Tx) (err error) {
			n, err = tx.TopicCount(ada.app.ID)
			return err
		}))
		return n
	}
	before := topics()
	ask := sourceAsk(ada.app.SubscriberKey, "http://x.example.com/")
	_, err := w.Provision(t.Context(), ask)
	wantKind(t, "not signed", err, freshet.Unauthenticated)
	ask.Signed = &Signature{Timestamp: "1", Value: "b3RoZXIgYmVhY29uIGFuZCBhIG1hYyBvZiBub2JvZHkgYXQgYWxsLCByZWFsbHk=", URLs: []string{ask.Source.URL}}
	_, err = w.Provision(t.Context(), ask)
	wantKind(t, "signed by somebody else", err, freshet.UnknownCredential)
	if after := topics(); after != before {
		t.Errorf("%d topics were made", after-before)
	}
}
