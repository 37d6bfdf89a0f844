package catalog

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/freshet-io/freshet"
)

// seals keep what pollers show to their targets unreadable in the database and in its backups. Their keys come from the
// token secret, which every node has.
type seals struct {
	box      cipher.AEAD
	before   []cipher.AEAD // of previous secrets: they open what is not sealed again yet
	identity []byte        // of auto-provisioned topics
	people   []byte        // hashes where they signed in from, and e-mails in logs
	id       []byte        // tells secrets apart, and nothing about them
}

func newSeals(secret []byte, previous ...[]byte) (s *seals, err error) {
	s = &seals{}
	if s.box, err = newBox(secret); err != nil {
		return nil, err
	}
	for _, p := range previous {
		box, err := newBox(p)
		if err != nil {
			return nil, err
		}
		s.before = append(s.before, box)
	}
	if s.identity, err = hkdf.Key(sha256.New, secret, nil, "freshet identity", 32); err != nil {
		return nil, err
	}
	if s.people, err = hkdf.Key(sha256.New, secret, nil, "freshet people", 32); err != nil {
		return nil, err
	}
	s.id, err = secretID(secret)
	return s, err
}

func newBox(secret []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "freshet credentials", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// secretID is what the database knows of a secret: enough to tell whether it has sealed what is there.
func secretID(secret []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, "freshet key id", 16)
}

// pseudonym stands for an address or an e-mail. There are few enough of them to try them all, so the hash is keyed.
func (s *seals) pseudonym(kind, text string) string {
	mac := hmac.New(sha256.New, s.people)
	mac.Write([]byte(kind + " " + text))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// sealedForm is what is sealed. New members may be added.
type sealedForm struct {
	URL     string         `json:"url,omitempty"` // of an auto-provisioned topic: its query may be a credential
	Headers []sealedHeader `json:"headers,omitempty"`
	OAuth2  *sealedOAuth2  `json:"oauth2,omitempty"`
}

type sealedHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type sealedOAuth2 struct {
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	Scopes       []string `json:"scopes,omitempty"`
}

// seal puts the credentials of the topic into their stored form. url is sealed with them unless empty. The topic's
// identifier is part of the seal, so that nobody can move one to a topic of his own.
func (s *seals) seal(topic *freshet.Topic, url string) error {
	p := &topic.Publisher
	if p.Credentials.IsZero() && url == "" {
		p.Sealed = ""
		return nil
	}
	form := sealedForm{URL: url}
	for _, h := range p.Headers {
		form.Headers = append(form.Headers, sealedHeader{h.Name, h.Value.Reveal()})
	}
	if o := p.OAuth2; o != nil {
		form.OAuth2 = &sealedOAuth2{o.TokenURL, o.ClientID, o.ClientSecret.Reveal(), o.Scopes}
	}
	plain, err := json.Marshal(form)
	if err != nil {
		return err
	}
	nonce := make([]byte, s.box.NonceSize(), s.box.NonceSize()+len(plain)+s.box.Overhead())
	rand.Read(nonce)
	p.Sealed = base64.RawStdEncoding.EncodeToString(s.box.Seal(nonce, nonce, plain, []byte(topic.ID)))
	return nil
}

var errSeal = errors.New("stored credentials cannot be read; was token.secret changed, or the key file lost?")

// open is the reverse of seal. It leaves Sealed as it is.
func (s *seals) open(topic *freshet.Topic) (url string, err error) {
	p := &topic.Publisher
	p.Credentials = freshet.Credentials{}
	if p.Sealed == "" {
		return "", nil
	}
	plain, ok := unbox(s.box, topic)
	for _, box := range s.before {
		if ok {
			break
		}
		plain, ok = unbox(box, topic)
	}
	if !ok {
		return "", fmt.Errorf("topic %s: %w", topic.ID, errSeal)
	}
	var form sealedForm
	if err := json.Unmarshal(plain, &form); err != nil {
		return "", fmt.Errorf("topic %s: %w", topic.ID, errSeal) // the cause could quote what was sealed
	}
	for _, h := range form.Headers {
		p.Headers = append(p.Headers, freshet.HeaderField{Name: h.Name, Value: freshet.Secret(h.Value)})
	}
	if o := form.OAuth2; o != nil {
		p.OAuth2 = &freshet.OAuth2{TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: freshet.Secret(o.ClientSecret), Scopes: o.Scopes}
	}
	return form.URL, nil
}

func unbox(box cipher.AEAD, topic *freshet.Topic) (plain []byte, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(topic.Publisher.Sealed)
	n := box.NonceSize()
	if err != nil || len(raw) < n {
		return nil, false
	}
	plain, err = box.Open(nil, raw[:n], raw[n:], []byte(topic.ID))
	return plain, err == nil
}

// outdated reports whether the topic's credentials are sealed with something else than the current secret.
func (s *seals) outdated(topic *freshet.Topic) bool {
	if topic.Publisher.Sealed == "" {
		return false
	}
	_, ok := unbox(s.box, topic)
	return !ok
}
