package freshet

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ActivationIssuer is the public key of the project, which checks activation keys unless the operator names another issuer.
// Its private half is kept outside the repository.
const ActivationIssuer = "EGCGRbWCwT1JS0QjD8GxD2w3b0pA8McXAsYt-fs5a80"

// Activation is what an activation key says. A key is
//
//	freshet-activation-1.<payload>.<signature>
//
// with the payload as JSON and both parts in unpadded base64url. The signature (Ed25519) covers everything before the second
// dot, so a signature made for something else by the same key never passes. There is one algorithm and no field to choose
// another.
type Activation struct {
	ID        string           `json:"id"`
	Holder    string           `json:"holder"`
	Edition   string           `json:"edition"`
	NotBefore int64            `json:"not_before"` // seconds since 1970
	Expires   int64            `json:"expires"`    // seconds since 1970; from then on the key is no good
	Limits    ActivationLimits `json:"limits"`
}

// ActivationLimits are what the holder may use.
type ActivationLimits struct {
	Connections int64 `json:"connections"` // subscribers at once, on all nodes together; 0 is any number
}

const (
	activationPrefix = "freshet-activation-1"
	maxActivation    = 4096 // characters of a key
	maxHolder        = 200  // characters
	maxEditionName   = 32   // characters
)

// From is when the key becomes good.
func (a *Activation) From() time.Time { return time.Unix(a.NotBefore, 0).UTC() }

// Until is when it stops being good.
func (a *Activation) Until() time.Time { return time.Unix(a.Expires, 0).UTC() }

// Validate checks what does not depend on the time.
func (a *Activation) Validate() error {
	var f faults
	if strings.TrimSpace(a.Holder) == "" || utf8.RuneCountInString(a.Holder) > maxHolder || strings.ContainsFunc(a.Holder, unicode.IsControl) {
		f.add("holder", "must be a name of at most %d characters on one line", maxHolder)
	}
	if !isEditionName(a.Edition) {
		f.add("edition", "must begin with a letter and have at most %d characters of a-z, 0-9 and -", maxEditionName)
	}
	if a.Expires <= a.NotBefore {
		f.add("expires", "must be after the day from which the key is good")
	}
	if a.Limits.Connections < 0 || a.Limits.Connections > MaxQuota {
		f.add("connections", "must be a whole number from 0 to %d; 0 is unlimited", int64(MaxQuota))
	}
	if f == nil {
		return nil
	}
	return &Error{Kind: Invalid, Msg: "The activation is not valid", Fields: f}
}

func isEditionName(name string) bool {
	if name == "" || len(name) > maxEditionName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Sign makes the activation key. The caller keeps the private key.
func (a *Activation) Sign(issuer ed25519.PrivateKey) (Secret, error) {
	if err := a.Validate(); err != nil {
		return "", err
	}
	payload, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	signed := activationPrefix + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature := ed25519.Sign(issuer, []byte(signed))
	return Secret(signed + "." + base64.RawURLEncoding.EncodeToString(signature)), nil
}

// ReadActivation returns what a key says without believing it: who made it and whether it is good now is for
// VerifyActivation.
func ReadActivation(key Secret) (*Activation, error) {
	a, _, _, err := splitActivation(key)
	return a, err
}

// VerifyActivation returns what a key says if the issuer made it and it is good at the time.
func VerifyActivation(key Secret, issuer ed25519.PublicKey, now time.Time) (*Activation, error) {
	a, signed, signature, err := splitActivation(key)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(issuer, []byte(signed), signature) {
		return nil, Errorf(UnknownCredential, "The activation key was changed, or made by an issuer that is not trusted here")
	}
	if now.Before(a.From()) {
		return nil, Errorf(Unauthenticated, "The activation key of %s is good from %s on, not yet", a.Holder, day(a.From()))
	}
	if !now.Before(a.Until()) {
		return nil, Errorf(ExpiredCredential, "The activation key of %s expired on %s", a.Holder, day(a.Until()))
	}
	return a, nil
}

func day(t time.Time) string { return t.Format("2006-01-02 15:04 UTC") }

// splitActivation takes a key apart. It is strict: what this version does not know, such as a limit it could not hold,
// makes a key malformed rather than half understood.
func splitActivation(key Secret) (a *Activation, signed string, signature []byte, err error) {
	malformed := func(why string) error {
		return Errorf(MalformedCredential, "This is no activation key: %s", why)
	}
	text := key.Reveal()
	if len(text) > maxActivation {
		return nil, "", nil, malformed("it is too long")
	}
	prefix, rest, _ := strings.Cut(text, ".")
	body, tail, two := strings.Cut(rest, ".")
	if prefix != activationPrefix || !two {
		return nil, "", nil, malformed("it must have the form " + activationPrefix + ".….…")
	}
	strict := base64.RawURLEncoding.Strict() // one text for one key
	payload, err := strict.DecodeString(body)
	if err != nil {
		return nil, "", nil, malformed("its middle part is damaged")
	}
	if signature, err = strict.DecodeString(tail); err != nil || len(signature) != ed25519.SignatureSize {
		return nil, "", nil, malformed("its last part is damaged or cut off")
	}
	decode := json.NewDecoder(bytes.NewReader(payload))
	decode.DisallowUnknownFields()
	a = &Activation{}
	if err := decode.Decode(a); err != nil {
		return nil, "", nil, malformed("it is damaged, or made for another version")
	}
	if _, err := decode.Token(); err != io.EOF {
		return nil, "", nil, malformed("it is damaged")
	}
	if err := a.Validate(); err != nil {
		return nil, "", nil, malformed("it does not say who may do what until when")
	}
	return a, activationPrefix + "." + body, signature, nil
}

// ParseActivationIssuer reads the public key of an issuer, as freshet activation keygen prints it.
func ParseActivationIssuer(text string) (ed25519.PublicKey, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, Errorf(Invalid, "must be a public key as freshet activation keygen prints it, 43 characters")
	}
	return raw, nil
}

// FormatActivationIssuer writes a public key the way ParseActivationIssuer reads it.
func FormatActivationIssuer(k ed25519.PublicKey) string {
	return base64.RawURLEncoding.EncodeToString(k)
}
