package catalog

import (
	"encoding/base64"
	"strconv"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

// node is another process on the same store and grid, with a clock of its own.
func (w *world) node(ahead time.Duration) *Catalog {
	w.t.Helper()
	opts := w.options()
	opts.Now = func() time.Time { return w.clock().Add(ahead) }
	c, err := New(w.t.Context(), w.store, w.grid, opts)
	w.check(err)
	w.t.Cleanup(c.Close)
	return c
}

// skews are how far clocks of nodes are from each other's.
var skews = map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour, "right": 0}

func TestARenewedKeyIsRevokedOnEveryNodeWhateverItsClock(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	for name, skew := range skews {
		ada, renewing := w.owner(), w.node(skew)
		_, err := w.UpdateApp(t.Context(), ada.actor, ada.app.ID, func(a *freshet.App) { a.SignatureRequired = true })
		w.check(err)
		signed := w.signedAsk(ada)
		for _, kind := range freshet.KeyKinds() {
			// One that overlaps ends with the next renewal.
			for _, overlap := range []time.Duration{time.Hour, 0} {
				_, err := renewing.RenewKey(t.Context(), ada.actor, ada.app.ID, kind, Renewal{Overlap: overlap})
				w.check(err)
			}
		}
		for other, skew := range skews {
			node := w.node(skew)
			what := "renewed by a node that is " + name + ", asked at one that is " + other
			_, err := node.MayPublish(t.Context(), ada.topic.ID, ada.app.PublisherKey.Reveal())
			wantKind(t, what, err, freshet.RevokedCredential)
			_, err = node.MaySubscribe(t.Context(), SubscribeAsk{TopicID: ada.topic.ID, Key: ada.app.SubscriberKey.Reveal()})
			wantKind(t, what, err, freshet.RevokedCredential)
			_, err = node.MaySubscribe(t.Context(), signed)
			wantKind(t, what, err, freshet.RevokedCredential)
		}
	}
}

// signedAsk is a question that is signed with the app's present key.
func (w *world) signedAsk(o owner) SubscribeAsk {
	w.t.Helper()
	plain, err := base64.StdEncoding.DecodeString(o.app.SignatureKey.Reveal())
	w.check(err)
	url, ts := "/v1/topics/"+o.topic.ID, strconv.FormatInt(w.clock().Add(-3*time.Hour).UnixMilli(), 10)
	value := base64.StdEncoding.EncodeToString([]byte(string(plain[:beaconLen]) + sign(plain[beaconLen:], ts, url)))
	return SubscribeAsk{TopicID: o.topic.ID, Signed: &Signature{Timestamp: ts, Value: value, URLs: []string{url}}}
}

func TestATokenIsGoodAtANodeWhoseClockIsALittleBehind(t *testing.T) {
	t.Parallel()
	w := openWorld(t, nil)
	token, err := w.node(maxTokenSkew/2).SignIn(t.Context(), freshet.FixedAdminEmail, freshet.FixedAdminPassword, "192.0.2.1")
	w.check(err)
	if _, err := w.Authenticate(t.Context(), token.Text.Reveal()); err != nil {
		t.Errorf("at a node that is behind: %v", err)
	}
}
