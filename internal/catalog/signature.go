package catalog

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/freshet-io/freshet"
)

// Signature is a client's proof that it holds the app's signature key, made over its request. The transport may
// have escaped the signed URL on its way, so there are several readings of it, to be tried in order. There is none if the request
// asks for something that no signature covers.
type Signature struct {
	Timestamp string // milliseconds, as sent
	Value     string // base64(beacon + base64(HMAC-SHA512(secret, message)))
	URLs      []string
}

// A reconnecting client replays its first signature, so its age is allowed to be long. One from the future is
// allowed for clocks that disagree.
const (
	defaultSignatureAge = 24 * time.Hour
	maxSignatureSkew    = 5 * time.Minute
)

const beaconLen = 36 // characters; the rest of a signature key is its secret

// verify checks the signature against the app's key. The messages never say which part did not match.
func (s *Signature) verify(key freshet.Key, now time.Time, maxAge time.Duration) error {
	ms, err := strconv.ParseInt(s.Timestamp, 10, 64)
	if err != nil {
		return freshet.Errorf(freshet.MalformedCredential, "X-Auth-Sd-Ts must be a time in milliseconds")
	}
	sent, err := base64.StdEncoding.DecodeString(s.Value)
	if err != nil || len(sent) <= beaconLen {
		return freshet.Errorf(freshet.MalformedCredential, "X-Auth-Sd-S is not a signature")
	}
	plain, err := base64.StdEncoding.DecodeString(key.Reveal())
	if err != nil || len(plain) <= beaconLen {
		return freshet.Wrap(freshet.Internal, err, "stored signature key is malformed")
	}
	matched := false
	for _, url := range s.URLs {
		want := append(plain[:beaconLen:beaconLen], sign(plain[beaconLen:], s.Timestamp, url)...)
		matched = hmac.Equal(sent, want) || matched
	}
	if !matched {
		return freshet.Errorf(freshet.UnknownCredential, "The signature does not match the request: it covers a topic's path, or a whole target URL with its query, which stands before parameters of ours")
	}
	age := now.Sub(time.UnixMilli(ms))
	if age > maxAge || age < -maxSignatureSkew {
		return freshet.Errorf(freshet.ExpiredCredential, "The signature is too old, or its time lies ahead; sign the request again")
	}
	return nil
}

// sign returns the base64 text of the HMAC over one reading of a request.
func sign(secret []byte, timestamp, url string) string {
	mac := hmac.New(sha512.New, secret)
	mac.Write([]byte("GET\n" + timestamp + "\n" + url + "\n"))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
