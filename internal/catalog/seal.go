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

// seals keeps what pollers show to their targets unreadable in the database and in its backups. Its keys come from the
// token secret, which every node has.
type seals struct {
	box      cipher.AEAD
	identity []byte // of auto-provisioned topics
	people   []byte // hashes where they signed in from, and e-mails in logs
}

func newSeals(secret []byte) (*seals, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "freshet credentials", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	identity, err := hkdf.Key(sha256.New, secret, nil, "freshet identity", 32)
	if err != nil {
		return nil, err
	}
	people, err := hkdf.Key(sha256.New, secret, nil, "freshet people", 32)
	return &seals{box: box, identity: identity, people: people}, err
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

var errSeal = errors.New("stored credentials cannot be read; was token.secret changed?")

// open is the reverse of seal. It leaves Sealed as it is.
func (s *seals) open(topic *freshet.Topic) (url string, err error) {
	p := &topic.Publisher
	p.Credentials = freshet.Credentials{}
	if p.Sealed == "" {
		return "", nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(p.Sealed)
	if err != nil || len(raw) < s.box.NonceSize() {
		return "", fmt.Errorf("topic %s: %w", topic.ID, errSeal)
	}
	n := s.box.NonceSize()
	plain, err := s.box.Open(nil, raw[:n], raw[n:], []byte(topic.ID))
	if err != nil {
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
