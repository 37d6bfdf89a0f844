package freshet

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
)

// KeyKind says what a key of an app is good for.
type KeyKind string

// The keys every app has, one of each.
const (
	SubscriberKey KeyKind = "subscriber"
	PublisherKey  KeyKind = "publisher"
	SignatureKey  KeyKind = "signature"
)

// KeyKinds lists every kind.
func KeyKinds() []KeyKind { return []KeyKind{SubscriberKey, PublisherKey, SignatureKey} }

// Key is the secret text of a key. It hides itself in logs and formatted output: keys must never be shown except
// to their owner, who gets them through Reveal.
type Key string

const hiddenKey = "[key]"

// Reveal returns the secret, for storing, comparing and showing it to its owner.
func (k Key) Reveal() string { return string(k) }

// String hides the secret from fmt.
func (k Key) String() string { return hiddenKey }

// GoString hides the secret from %#v.
func (k Key) GoString() string { return hiddenKey }

// Format hides the secret from every verb of fmt, wrong ones included.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hiddenKey) }

// LogValue hides the secret from slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(hiddenKey) }

// MarshalText hides the secret from encoders, so that a struct around it can be logged as JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(hiddenKey), nil }

// KeyRecord is one key of an app, current or past. A renewed key stays behind as revoked, so that its bearer can
// be told so.
type KeyRecord struct {
	AppID     string
	Kind      KeyKind
	Key       Key
	CreatedAt time.Time
	RevokedAt time.Time // zero while current; in the future while it overlaps its successor; long ago if it did not
}

// Revoked reports whether the key no longer works at the given time.
func (r *KeyRecord) Revoked(now time.Time) bool {
	return !r.RevokedAt.IsZero() && !now.Before(r.RevokedAt)
}

const (
	keyLen       = 48 // characters of a key that we make: 285 bits
	minKey       = 16
	maxKey       = 128
	keyAlphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	signatureLen = 72 // beacon and secret, 36 characters of UUID text each
)

// NewKey makes a fresh key of the kind.
func NewKey(kind KeyKind) Key {
	if kind == SignatureKey {
		return Key(base64.StdEncoding.EncodeToString([]byte(uuid.NewString() + uuid.NewString())))
	}
	return Key(randomText(keyLen))
}

// randomText draws n characters of the key alphabet without bias: it discards bytes beyond the largest multiple
// of the alphabet's size.
func randomText(n int) string {
	const limit = 256 - 256%len(keyAlphabet)
	out := make([]byte, 0, n)
	buf := make([]byte, 2*n)
	for len(out) < n {
		rand.Read(buf) // never fails: crypto/rand crashes the process rather than return weak bytes
		for _, b := range buf {
			if int(b) < limit && len(out) < n {
				out = append(out, keyAlphabet[int(b)%len(keyAlphabet)])
			}
		}
	}
	return string(out)
}

// CanBeKey reports whether text has the form of a subscriber or publisher key, ours or one brought along from
// elsewhere.
func CanBeKey(text string) bool {
	if len(text) < minKey || len(text) > maxKey {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c != '_' && c != '-' && strings.IndexByte(keyAlphabet, c) < 0 {
			return false
		}
	}
	return true
}

// ParseKey checks a key that was brought along from elsewhere.
func ParseKey(kind KeyKind, text string) (Key, error) {
	var f faults
	switch {
	case text == "":
		f.add("key", "must not be empty")
	case kind == SignatureKey && !canBeSignatureKey(text):
		f.add("key", "must be the base64 form of two UUIDs, %d characters before encoding", signatureLen)
	case kind != SignatureKey && !CanBeKey(text):
		f.add("key", "must have %d to %d characters of A-Z, a-z, 0-9, _ and -", minKey, maxKey)
	}
	return Key(text), f.err()
}

func canBeSignatureKey(text string) bool {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != signatureLen {
		return false
	}
	_, beacon := uuid.Parse(string(raw[:36]))
	_, secret := uuid.Parse(string(raw[36:]))
	return beacon == nil && secret == nil
}
