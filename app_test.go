package freshet

import (
	"strings"
	"testing"
	"time"
)

func TestAnAppHasANameAndSaneDefaults(t *testing.T) {
	const field, bounds = "default_configurations.http-poller.polling_frequency", "must be between 100 and 86400000 milliseconds"
	for name, test := range map[string]struct {
		app  App
		want map[string]string
	}{
		"good":        {App{Name: "Quotes"}, nil},
		"no name":     {App{}, map[string]string{"name": "is required"}},
		"long name":   {App{Name: strings.Repeat("名", 201)}, map[string]string{"name": "is longer than 200 characters"}},
		"any script":  {App{Name: strings.Repeat("名", 200)}, nil},
		"fastest":     {App{Name: "a", Defaults: Defaults{PollEvery: new(MinPollEvery)}}, nil},
		"too fast":    {App{Name: "a", Defaults: Defaults{PollEvery: new(MinPollEvery - 1)}}, map[string]string{field: bounds}},
		"slowest":     {App{Name: "a", Defaults: Defaults{PollEvery: new(MaxPollEvery)}}, nil},
		"too slow":    {App{Name: "a", Defaults: Defaults{PollEvery: new(MaxPollEvery + 1)}}, map[string]string{field: bounds}},
		"all at once": {App{Defaults: Defaults{PollEvery: new(time.Duration(0))}}, map[string]string{"name": "is required", field: bounds}},
	} {
		wantFaults(t, name, test.app.Validate(), test.want)
	}
}

func TestDefaultsOfTheServiceApplyWhereTheAppHasNone(t *testing.T) {
	var none Defaults
	if none.EffectivePollEvery() != 2*time.Second || !none.EffectiveForcePublishing() {
		t.Error("the service's defaults")
	}
	own := Defaults{PollEvery: new(time.Second), ForcePublishing: new(false)}
	if own.EffectivePollEvery() != time.Second || own.EffectiveForcePublishing() {
		t.Error("the app's defaults")
	}
}

func TestAnAppHasOneKeyOfEachKind(t *testing.T) {
	var a App
	for i, kind := range KeyKinds() {
		a.SetKey(kind, Key(rune('a'+i)))
	}
	for i, kind := range KeyKinds() {
		if a.Key(kind) != Key(rune('a'+i)) {
			t.Errorf("%s key %q", kind, a.Key(kind).Reveal())
		}
	}
	if a.SubscriberKey == a.PublisherKey || a.PublisherKey == a.SignatureKey {
		t.Error("keys share a place")
	}
}
