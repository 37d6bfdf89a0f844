package client

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"strconv"
	"time"
)

const uuidText = 36 // characters

// signer makes the signatures that an app can ask of its subscribers. Its key is an app's signature key: a beacon, which
// tells the server whose signature this is, and a secret, which stays here.
type signer struct{ beacon, secret string }

func newSigner(key string) (*signer, error) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 2*uuidText {
		return nil, errors.New("client: SignatureKey must be an app's signature key as the server shows it")
	}
	return &signer{beacon: string(raw[:uuidText]), secret: string(raw[uuidText:])}, nil
}

// sign returns the values of X-Auth-Sd-Ts and X-Auth-Sd-S for what is asked for: a topic's path, or a target's URL.
func (s *signer) sign(asked string, now time.Time) (stamp, signature string) {
	stamp = strconv.FormatInt(now.UnixMilli(), 10)
	mac := hmac.New(sha512.New, []byte(s.secret))
	mac.Write([]byte("GET\n" + stamp + "\n" + asked + "\n"))
	sum := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return stamp, base64.StdEncoding.EncodeToString([]byte(s.beacon + sum))
}
