package freshet

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	issuedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	midTerm  = issuedAt.AddDate(0, 6, 0)
)

// issuer returns the same keys at every call, so that failures can be repeated.
func issuer(seed byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize)))
	return private.Public().(ed25519.PublicKey), private
}

func activation() Activation {
	return Activation{
		ID: "018f", Holder: "Example Ltd", Edition: "team", NotBefore: issuedAt.Unix(), Expires: issuedAt.AddDate(1, 0, 0).Unix(),
		Limits: ActivationLimits{Connections: 500},
	}
}

func signed(t *testing.T, a Activation) Secret {
	t.Helper()
	_, private := issuer(0)
	key, err := a.Sign(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAnActivationKeySaysWhatWasSigned(t *testing.T) {
	public, _ := issuer(0)
	key := signed(t, activation())
	got, err := VerifyActivation(key, public, midTerm)
	if err != nil || *got != activation() {
		t.Errorf("got %+v, %v", got, err)
	}
	if shown := fmt.Sprint(key); strings.Contains(shown, activationPrefix) {
		t.Errorf("the key shows itself: %s", shown)
	}
}

func TestAnActivationKeyIsGoodFromItsFirstSecondToBeforeItsLast(t *testing.T) {
	public, _ := issuer(0)
	a := activation()
	key := signed(t, a)
	for _, c := range []struct {
		at   time.Time
		want Kind
		good bool
	}{
		{a.From().Add(-time.Second), Unauthenticated, false},
		{a.From(), 0, true},
		{a.Until().Add(-time.Second), 0, true},
		{a.Until(), ExpiredCredential, false},
		{a.Until().AddDate(10, 0, 0), ExpiredCredential, false},
	} {
		_, err := VerifyActivation(key, public, c.at)
		if good := err == nil; good != c.good || !good && KindOf(err) != c.want {
			t.Errorf("at %s: %v", c.at, err)
		}
	}
}

func TestAKeyOfAnotherIssuerIsRefused(t *testing.T) {
	other, _ := issuer(1)
	if _, err := VerifyActivation(signed(t, activation()), other, midTerm); KindOf(err) != UnknownCredential {
		t.Errorf("got %v", err)
	}
}

func TestNoCharacterOfAnActivationKeyCanBeChanged(t *testing.T) {
	public, _ := issuer(0)
	key := signed(t, activation()).Reveal()
	for i := range key {
		for _, c := range []byte{'A', 'B', '.', '=', '\n'} {
			if key[i] == c {
				continue
			}
			changed := key[:i] + string(c) + key[i+1:]
			if _, err := VerifyActivation(Secret(changed), public, midTerm); err == nil {
				t.Fatalf("accepted with %q at %d: %s", c, i, changed)
			}
		}
	}
}

func TestALargerLimitNeedsANewSignature(t *testing.T) {
	public, _ := issuer(0)
	generous := activation()
	generous.Limits.Connections = 0
	parts := strings.Split(signed(t, activation()).Reveal(), ".")
	parts[1] = strings.Split(signed(t, generous).Reveal(), ".")[1]
	if _, err := VerifyActivation(Secret(strings.Join(parts, ".")), public, midTerm); KindOf(err) != UnknownCredential {
		t.Errorf("got %v", err)
	}
}

// seal signs any payload, as an issuer of another version might.
func seal(payload string) Secret {
	_, private := issuer(0)
	body := activationPrefix + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	return Secret(body + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(body))))
}

func TestAKeyThatIsNotUnderstoodIsRefusedAlthoughSigned(t *testing.T) {
	public, _ := issuer(0)
	const rest = `"id":"1","holder":"H","edition":"team","not_before":1,"expires":9999999999`
	if _, err := VerifyActivation(seal(`{`+rest+`,"limits":{"connections":5}}`), public, midTerm); err != nil {
		t.Fatalf("the test's own key is refused: %v", err)
	}
	for _, payload := range []string{
		``, `null`, `[]`, `"x"`, `{}`, `{` + rest + `}{}`,
		`{` + rest + `,"limits":{"connections":5,"topics":3}}`,
		`{` + rest + `,"limits":{"connections":-1}}`,
		`{` + rest + `,"limits":{"connections":1.5}}`,
		`{` + rest + `,"limits":{"connections":99999999999999999999}}`,
		`{` + rest + `,"critical":true}`,
		`{"id":"1","holder":" ","edition":"team","not_before":1,"expires":9999999999}`,
		`{"id":"1","holder":"a\nb","edition":"team","not_before":1,"expires":9999999999}`,
		`{"id":"1","holder":"H","edition":"Team 1","not_before":1,"expires":9999999999}`,
		`{"id":"1","holder":"H","edition":"team","not_before":5,"expires":5}`,
	} {
		if _, err := VerifyActivation(seal(payload), public, midTerm); KindOf(err) != MalformedCredential {
			t.Errorf("%s: got %v", payload, err)
		}
	}
}

func TestWhatIsNoActivationKeyIsSaidToBeNone(t *testing.T) {
	key := signed(t, activation()).Reveal()
	for _, text := range []string{
		"", ".", "..", "x", "a.b.c", key[:len(key)-1], key + "A", key + ".x", " " + key, key + "=", strings.ToUpper(key),
		strings.Replace(key, "-1.", "-2.", 1), strings.Repeat("x", maxActivation+1), "eyJhbGciOiJub25lIn0.e30.",
	} {
		if _, err := ReadActivation(Secret(text)); KindOf(err) != MalformedCredential {
			t.Errorf("%.40q: got %v", text, err)
		}
	}
}

func TestOnlyACompleteActivationIsSigned(t *testing.T) {
	_, private := issuer(0)
	for field, spoil := range map[string]func(*Activation){
		"holder":      func(a *Activation) { a.Holder = "" },
		"edition":     func(a *Activation) { a.Edition = "1st" },
		"expires":     func(a *Activation) { a.Expires = a.NotBefore },
		"connections": func(a *Activation) { a.Limits.Connections = MaxQuota + 1 },
	} {
		a := activation()
		spoil(&a)
		if _, err := a.Sign(private); err == nil || !strings.Contains(err.Error(), field+" must") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestTheEditionFollowsFromTheKeyElseFromTheDistribution(t *testing.T) {
	a := activation()
	for _, c := range []struct {
		distribution Distribution
		activation   *Activation
		want         Edition
	}{
		{DistributionBinary, nil, Edition{"open", 0}},
		{DistributionContainer, nil, Edition{"beta", 10}},
		{DistributionContainer, &a, Edition{"team", 500}},
		{DistributionBinary, &a, Edition{"team", 500}},
	} {
		if got := EditionOf(c.distribution, c.activation); got != c.want {
			t.Errorf("%s, key %v: got %+v", c.distribution, c.activation != nil, got)
		}
	}
	if got := BetaEdition.Refusal(); !strings.Contains(got, "beta edition") || !strings.Contains(got, "10") || !strings.Contains(got, "activation key") {
		t.Errorf("the refusal says %q", got)
	}
}

func TestIssuersAreReadAsTheyAreWritten(t *testing.T) {
	public, _ := issuer(0)
	got, err := ParseActivationIssuer(FormatActivationIssuer(public))
	if err != nil || !got.Equal(public) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ParseActivationIssuer(ActivationIssuer); err != nil {
		t.Errorf("the project's own: %v", err)
	}
	for _, text := range []string{"", "x", ActivationIssuer + "A", ActivationIssuer[1:], ActivationIssuer + "="} {
		if _, err := ParseActivationIssuer(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzReadActivationNeverPanics(f *testing.F) {
	f.Add(seal(`{}`).Reveal())
	f.Add("freshet-activation-1..")
	public, _ := issuer(1) // who has signed nothing here
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := VerifyActivation(Secret(text), public, midTerm); err == nil {
			t.Error("accepted")
		}
	})
}
