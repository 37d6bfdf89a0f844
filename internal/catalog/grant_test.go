package catalog

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestWhoMayPublish(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada, eve := w.owner(), w.owner()
	key := ada.app.PublisherKey.Reveal()
	grant, err := w.MayPublish(t.Context(), ada.topic.ID, key)
	w.check(err)
	if grant.Topic.ID != ada.topic.ID || grant.AppID != ada.app.ID || grant.UserID != ada.actor.User.ID || *grant.Topic.Publisher.ForcePublishing != true {
		t.Errorf("granted %+v", grant)
	}
	for _, spelled := range []string{escape(key), escape(escape(key)[:9]) + escape(key)[9:], escape(escape(key))} {
		if _, err := w.MayPublish(t.Context(), ada.topic.ID, spelled); err != nil {
			t.Errorf("encoded key: %v", err)
		}
	}
	for name, test := range map[string]struct {
		topic, key string
		want       freshet.Kind
	}{
		"no key":                  {ada.topic.ID, "", freshet.Unauthenticated},
		"odd key":                 {ada.topic.ID, "schlüssel-0123456789", freshet.MalformedCredential},
		"short key":               {ada.topic.ID, "short", freshet.MalformedCredential},
		"NUL":                     {ada.topic.ID, key + "\x00", freshet.MalformedCredential},
		"bad escape":              {ada.topic.ID, key + "%zz", freshet.MalformedCredential},
		"three times encoded":     {ada.topic.ID, escape(escape(escape(key))), freshet.MalformedCredential},
		"unknown key":             {ada.topic.ID, freshet.NewKey(freshet.PublisherKey).Reveal(), freshet.UnknownCredential},
		"other case":              {ada.topic.ID, swapCase(key), freshet.UnknownCredential},
		"subscriber key":          {ada.topic.ID, ada.app.SubscriberKey.Reveal(), freshet.UnknownCredential},
		"another's key":           {ada.topic.ID, eve.app.PublisherKey.Reveal(), freshet.Unauthenticated},
		"unknown topic":           {freshet.NewID(), key, freshet.TopicNotFound},
		"odd topic":               {"../../x\x00", key, freshet.TopicNotFound},
		"unknown topic and key":   {freshet.NewID(), freshet.NewKey(freshet.PublisherKey).Reveal(), freshet.UnknownCredential},
		"another's topic":         {eve.topic.ID, key, freshet.Unauthenticated},
		"app instead of a topic":  {ada.app.ID, key, freshet.TopicNotFound},
		"upper-case topic itself": {swapCase(ada.topic.ID), key, freshet.TopicNotFound},
	} {
		_, err := w.MayPublish(t.Context(), test.topic, test.key)
		wantKind(t, name, err, test.want)
	}
}

func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		} else if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}

func TestASubscriberNeedsAKeyInProductionOnlyButABadOneHelpsNowhere(t *testing.T) {
	t.Parallel()
	for _, production := range []bool{false, true} {
		w := openWorld(t, func(o *Options) { o.Production, o.AdminPassword = production, "another password" })
		ada, eve := w.owner(), w.owner()
		ask := func(topic string, key freshet.Key) error {
			ask := SubscribeAsk{TopicID: topic, Key: key.Reveal()}
			now := w.MaySubscribeNow(&ask)
			_, err := w.MaySubscribe(t.Context(), ask)
			if now && err != nil {
				t.Errorf("who cannot wait is let in: %v", err)
			}
			if again := w.MaySubscribeNow(&ask); again != (err == nil) {
				t.Errorf("who cannot wait is let in: %v; others: %v", again, err)
			}
			return err
		}
		w.check(ask(ada.topic.ID, ada.app.SubscriberKey))
		if production {
			wantKind(t, "no key", ask(ada.topic.ID, ""), freshet.Unauthenticated)
			wantKind(t, "no key, no topic", ask(freshet.NewID(), ""), freshet.Unauthenticated)
		} else {
			w.check(ask(ada.topic.ID, ""))
			wantKind(t, "no topic", ask(freshet.NewID(), ""), freshet.TopicNotFound)
		}
		wantKind(t, "another's key", ask(ada.topic.ID, eve.app.SubscriberKey), freshet.Unauthenticated)
		wantKind(t, "publisher key", ask(ada.topic.ID, ada.app.PublisherKey), freshet.UnknownCredential)
		wantKind(t, "odd key", ask(ada.topic.ID, "a b c d e f g h i j"), freshet.MalformedCredential)

		disabled := freshet.StatusDisabled
		_, err := w.UpdateAccount(t.Context(), w.admin(), ada.actor.User.ID, AccountChange{Status: &disabled})
		w.check(err)
		wantKind(t, "disabled", ask(ada.topic.ID, ada.app.SubscriberKey), freshet.AccountDisabled)
		wantKind(t, "disabled, publishing", w.publishWith(ada.topic.ID, ada.app.PublisherKey), freshet.AccountDisabled)
		if !production {
			wantKind(t, "disabled, no key", ask(ada.topic.ID, ""), freshet.AccountDisabled)
		}
		wantKind(t, "disabled, another's key", ask(ada.topic.ID, eve.app.SubscriberKey), freshet.Unauthenticated)
	}
}

// TestWhoCannotWaitIsLetInOnlyWithoutALimit: and only as long as what is known is new.
func TestWhoCannotWaitIsLetInOnlyWithoutALimit(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	ask := SubscribeAsk{TopicID: ada.topic.ID, Key: ada.app.SubscriberKey.Reveal()}
	want := func(when string, now bool) {
		t.Helper()
		if got := w.MaySubscribeNow(&ask); got != now {
			t.Errorf("%s: %v", when, got)
		}
	}
	know := func() {
		t.Helper()
		_, err := w.MaySubscribe(t.Context(), ask)
		w.check(err)
	}
	want("not known yet", false)
	know()
	want("known", true)
	w.advance(freshFor)
	want("known too long", false)
	know()
	want("known again", true)
	for _, quotas := range []freshet.Quotas{{Connections: 1}, {MessagesPerMonth: 1}, {RequestsPerMinute: 1}} {
		change := QuotasChange{Connections: &quotas.Connections, MessagesPerMonth: &quotas.MessagesPerMonth, RequestsPerMinute: &quotas.RequestsPerMinute}
		_, err := w.UpdateAccount(t.Context(), w.admin(), ada.actor.User.ID, AccountChange{Quotas: change})
		w.check(err)
		want("after a change", false)
		know()
		want(fmt.Sprintf("%+v", quotas), quotas.RequestsPerMinute > 0) // which is no limit of subscribers
	}
	w.renew(ada, freshet.SubscriberKey, 0)
	want("renewed", false)
	if _, err := w.MaySubscribe(t.Context(), ask); freshet.KindOf(err) != freshet.RevokedCredential {
		t.Error(err)
	}
	want("revoked", false)
}

func TestARenewedKeyIsRevokedAtOnceOrAfterItsOverlap(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	first := ada.app.PublisherKey
	w.check(w.publishWith(ada.topic.ID, first))
	second := w.renew(ada, freshet.PublisherKey, 0)
	wantKind(t, "renewed", w.publishWith(ada.topic.ID, first), freshet.RevokedCredential)
	w.check(w.publishWith(ada.topic.ID, second))

	third := w.renew(ada, freshet.PublisherKey, time.Minute)
	w.check(w.publishWith(ada.topic.ID, second))
	w.check(w.publishWith(ada.topic.ID, third))
	w.advance(time.Minute - time.Millisecond)
	w.check(w.publishWith(ada.topic.ID, second))
	w.advance(time.Millisecond)
	wantKind(t, "after the overlap", w.publishWith(ada.topic.ID, second), freshet.RevokedCredential)
	w.check(w.publishWith(ada.topic.ID, third))

	w.check(w.reopen(nil))
	wantKind(t, "renewed, after a restart", w.publishWith(ada.topic.ID, first), freshet.RevokedCredential)
	w.check(w.DeleteApp(t.Context(), ada.actor, ada.app.ID))
	wantKind(t, "app deleted", w.publishWith(ada.topic.ID, third), freshet.UnknownCredential)
}

func TestAGrantCarriesTheSettingsInForce(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	ada := w.owner()
	force := func() bool {
		grant, err := w.MayPublish(t.Context(), ada.topic.ID, ada.app.PublisherKey.Reveal())
		w.check(err)
		return *grant.Topic.Publisher.ForcePublishing
	}
	if !force() {
		t.Error("not the service's default")
	}
	_, err := w.UpdateApp(t.Context(), ada.actor, ada.app.ID, func(a *freshet.App) { a.Defaults.ForcePublishing = new(false) })
	w.check(err)
	if force() {
		t.Error("not the app's default")
	}
	_, err = w.UpdateTopic(t.Context(), ada.actor, TopicRef{ID: ada.topic.ID}, func(t *freshet.Topic) error {
		t.Publisher.ForcePublishing = new(true)
		return nil
	})
	w.check(err)
	if !force() {
		t.Error("not the topic's own")
	}
}

func TestAfterDeletingNothingOpensAnyMore(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(w *world, o owner) error{
		"topic": func(w *world, o owner) error { return w.DeleteTopic(t.Context(), o.actor, TopicRef{ID: o.topic.ID}) },
		"app":   func(w *world, o owner) error { return w.DeleteApp(t.Context(), o.actor, o.app.ID) },
		"user":  func(w *world, o owner) error { return w.DeleteUser(t.Context(), o.actor, o.actor.User.ID) },
	} {
		w := openWorld(t, nil)
		ada := w.owner()
		w.check(w.publishWith(ada.topic.ID, ada.app.PublisherKey)) // now it is in the caches
		w.check(remove(w, ada))
		want := freshet.UnknownCredential
		if name == "topic" {
			want = freshet.TopicNotFound
		}
		wantKind(t, name, w.publishWith(ada.topic.ID, ada.app.PublisherKey), want)
		_, err := w.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID})
		wantKind(t, name, err, freshet.TopicNotFound)
	}
}

// vectors come from real clients.
var vectors = []struct{ beacon, secret, ts, url, mac string }{
	{"11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "1500000000000", "http://myRestservice.com/stocks",
		"V5SMXTL46gye3B0GQoyDohe3g+Nx5r945vb32hwEY+fWq3Qbz3XPbXGw2RqCCIYs5V5P+FXm6poGgoTefIHL2A=="},
	{"0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "1", "https://api.example.com:8443/caf%C3%A9/prix?q=été",
		"KYYDXYOBG+rBI2XkXTduyLRKgnh1Z+EUxtg8suPTTokBa4e18DN2fF5Io4GjwHHrUdFk5UrVjpWfgByqRGv9pA=="},
}

func TestASignatureOfARealClientVerifies(t *testing.T) {
	for _, v := range vectors {
		key := freshet.Key(base64.StdEncoding.EncodeToString([]byte(v.beacon + v.secret)))
		ms, err := strconv.ParseInt(v.ts, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMilli(ms)
		value := base64.StdEncoding.EncodeToString([]byte(v.beacon + v.mac))
		good := Signature{Timestamp: v.ts, Value: value, URLs: []string{"http://other", v.url}}
		verify := func(change func(*Signature), at time.Time) error {
			s := good
			if change != nil {
				change(&s)
			}
			return s.verify(key, at, defaultSignatureAge)
		}
		for _, at := range []time.Time{now, now.Add(24 * time.Hour), now.Add(-5 * time.Minute)} {
			if err := verify(nil, at); err != nil {
				t.Errorf("%s at %v: %v", v.url, at, err)
			}
		}
		for name, at := range map[string]time.Time{"too old": now.Add(24*time.Hour + time.Millisecond), "ahead": now.Add(-5*time.Minute - time.Millisecond)} {
			wantKind(t, name, verify(nil, at), freshet.ExpiredCredential)
		}
		for name, test := range map[string]struct {
			change func(*Signature)
			want   freshet.Kind
		}{
			"other url":      {func(s *Signature) { s.URLs = []string{v.url + "/"} }, freshet.UnknownCredential},
			"no url":         {func(s *Signature) { s.URLs = nil }, freshet.UnknownCredential},
			"other time":     {func(s *Signature) { s.Timestamp = "0" + s.Timestamp }, freshet.UnknownCredential},
			"other beacon":   {func(s *Signature) { s.Value = base64.StdEncoding.EncodeToString([]byte("x" + v.beacon[1:] + v.mac)) }, freshet.UnknownCredential},
			"other mac":      {func(s *Signature) { s.Value = base64.StdEncoding.EncodeToString([]byte(v.beacon + "x" + v.mac[1:])) }, freshet.UnknownCredential},
			"beacon only":    {func(s *Signature) { s.Value = base64.StdEncoding.EncodeToString([]byte(v.beacon)) }, freshet.MalformedCredential},
			"no base64":      {func(s *Signature) { s.Value = "***" }, freshet.MalformedCredential},
			"empty":          {func(s *Signature) { s.Value = "" }, freshet.MalformedCredential},
			"no time":        {func(s *Signature) { s.Timestamp = "" }, freshet.MalformedCredential},
			"time in words":  {func(s *Signature) { s.Timestamp = "now" }, freshet.MalformedCredential},
			"time too large": {func(s *Signature) { s.Timestamp = "9223372036854775808" }, freshet.MalformedCredential},
		} {
			wantKind(t, name, verify(test.change, now), test.want)
		}
	}
}

func TestAnAppMayInsistOnSignatures(t *testing.T) {
	t.Parallel()
	w := openWorld(t, func(o *Options) { o.SignatureAge = time.Hour })
	ada := w.owner()
	ask := func(signed *Signature) error {
		_, err := w.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID, Key: ada.app.SubscriberKey.Reveal(), Signed: signed})
		return err
	}
	w.check(ask(nil))
	w.check(ask(&Signature{Value: "nobody looks"}))
	_, err := w.UpdateApp(t.Context(), ada.actor, ada.app.ID, func(a *freshet.App) { a.SignatureRequired = true })
	w.check(err)
	wantKind(t, "unsigned", ask(nil), freshet.Unauthenticated)

	plain, err := base64.StdEncoding.DecodeString(ada.app.SignatureKey.Reveal())
	w.check(err)
	url, ts := "/v1/topics/"+ada.topic.ID, strconv.FormatInt(w.clock().UnixMilli(), 10)
	value := base64.StdEncoding.EncodeToString([]byte(string(plain[:beaconLen]) + sign(plain[beaconLen:], ts, url)))
	signed := &Signature{Timestamp: ts, Value: value, URLs: []string{url}}
	w.check(ask(signed))
	wantKind(t, "another URL", ask(&Signature{Timestamp: ts, Value: value, URLs: []string{url + "x"}}), freshet.UnknownCredential)
	w.renew(ada, freshet.SignatureKey, time.Minute)
	w.check(ask(signed)) // both keys work for a minute
	wantKind(t, "another URL", ask(&Signature{Timestamp: ts, Value: value, URLs: []string{url + "x"}}), freshet.UnknownCredential)
	w.advance(time.Minute)
	wantKind(t, "key renewed", ask(signed), freshet.RevokedCredential)
	w.advance(time.Hour + time.Millisecond)
	wantKind(t, "an hour later", ask(signed), freshet.ExpiredCredential)
	w.check(w.publishWith(ada.topic.ID, ada.app.PublisherKey)) // publishers sign nothing
}
