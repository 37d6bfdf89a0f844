package freshet

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAFreshKeyIsLongRandomAndPlain(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z0-9]{48}$`)
	seen := map[Key]bool{}
	for range 200 {
		for _, kind := range []KeyKind{SubscriberKey, PublisherKey} {
			k := NewKey(kind)
			if !form.MatchString(k.Reveal()) || seen[k] {
				t.Errorf("%s key %q", kind, k.Reveal())
			}
			seen[k] = true
		}
	}
	used := map[rune]bool{}
	for k := range seen {
		for _, r := range k.Reveal() {
			used[r] = true
		}
	}
	if len(used) != 62 {
		t.Errorf("only %d characters are ever used", len(used))
	}
}

func TestASignatureKeyIsABeaconAndASecret(t *testing.T) {
	k := NewKey(SignatureKey)
	raw, err := base64.StdEncoding.DecodeString(k.Reveal())
	if err != nil || len(raw) != 72 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	if _, err := ParseKey(SignatureKey, k.Reveal()); err != nil {
		t.Error(err)
	}
}

func TestAKeyFromElsewhereHasToLookLikeOne(t *testing.T) {
	for _, kind := range []KeyKind{SubscriberKey, PublisherKey} {
		for text, good := range map[string]bool{
			strings.Repeat("a", 16): true, strings.Repeat("Z", 128): true, "abc_DEF-0123456789": true, "": false, strings.Repeat("a", 15): false,
			strings.Repeat("a", 129): false, "0123456789abcde ": false, "0123456789abcde\n": false, "0123456789abcdé": false, "0123456789abcde%": false,
			"0123456789abcde\x00": false, "０１２３４５６７８９abcdef": false,
		} {
			if _, err := ParseKey(kind, text); (err == nil) != good || (err != nil && (faultsOf(t, err)["key"] == "" || (text != "" && strings.Contains(err.Error(), text)))) {
				t.Errorf("%q: %v", text, err)
			}
			if text != "" && CanBeKey(text) != good {
				t.Errorf("CanBeKey(%q)", text)
			}
		}
	}
	two := "11111111-2222-3333-4444-555555555555aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
	for text, good := range map[string]bool{
		base64.StdEncoding.EncodeToString([]byte(two)): true, base64.StdEncoding.EncodeToString([]byte(strings.ToUpper(two))): true, "": false, two: false,
		base64.StdEncoding.EncodeToString([]byte(two[:71])): false, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 72))): false,
		strings.Repeat("a", 48): false,
	} {
		if _, err := ParseKey(SignatureKey, text); (err == nil) != good {
			t.Errorf("signature key %q: %v", text, err)
		}
	}
}

func TestSecretsHideThemselves(t *testing.T) {
	const text = "hunter2hunter2hunter2"
	var log strings.Builder
	holder := struct {
		K Key
		S Secret
		P *Key
	}{Key(text), Secret(text), new(Key(text))}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "key", Key(text), "secret", Secret(text), "holder", holder, "pointer", &holder)
	}
	encoded, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%z", "%10s"} {
		shown += fmt.Sprintf(verb, Key(text)) + fmt.Sprintf(verb, Secret(text)) + fmt.Sprintf(verb, holder)
	}
	shown += Key(text).GoString() + Secret(text).GoString() + Key(text).String() + Secret(text).String() + fmt.Errorf("%w: %v", errors.New("x"), Key(text)).Error()
	if strings.Contains(shown, "hunter2") || strings.Contains(strings.ToLower(shown), fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("shown: %s", shown)
	}
	if Key(text).Reveal() != text || Secret(text).Reveal() != text {
		t.Error("not even revealed")
	}
}

func TestAKeyIsRevokedFromItsMomentOn(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		at   time.Time
		want bool
	}{{time.Time{}, false}, {now.Add(1), false}, {now, true}, {now.Add(-1), true}} {
		r := KeyRecord{RevokedAt: test.at}
		if got := r.Revoked(now); got != test.want {
			t.Errorf("revoked at %v: %v", test.at, got)
		}
	}
}
