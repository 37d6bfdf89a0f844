package server

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/keyfile"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/store"
)

// call makes one request to the management API and reads its answer.
func (r *running) call(t *testing.T, method, path, token string, body, answer any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.address("gateway")+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && answer != nil {
		err = json.Unmarshal(raw, answer)
	}
	if err != nil {
		t.Fatalf("%s %s: %v %s", method, path, err, raw)
	}
	return resp.StatusCode
}

// signIn returns a token of the admin.
func (r *running) signIn(t *testing.T) string {
	t.Helper()
	var session struct{ Token string }
	if status := r.call(t, "PUT", "/session", "", map[string]string{"email": freshet.FixedAdminEmail, "password": freshet.FixedAdminPassword}, &session); status/100 != 2 || session.Token == "" {
		t.Fatalf("signing in: %d %+v", status, session)
	}
	return session.Token
}

const canary = "canary-of-a-data-source"

// sealedTopic makes a topic whose data source asks for a credential.
func (r *running) sealedTopic(t *testing.T, token string) string {
	t.Helper()
	var app, topic struct{ ID string }
	if status := r.call(t, "POST", "/apps", token, map[string]string{"name": "Quotes"}, &app); status/100 != 2 {
		t.Fatalf("making an app: %d", status)
	}
	status := r.call(t, "POST", "/apps/"+app.ID+"/topics", token, map[string]any{
		"name": "Polled",
		"publisher": map[string]any{
			"type":    "http-poller",
			"config":  map[string]any{"url": "http://source.example.com/", "headers": map[string]string{"X-Api-Key": canary}},
			"payload": map[string]any{"type": "snapshot"},
		},
	}, &topic)
	if status/100 != 2 {
		t.Fatalf("making a topic: %d", status)
	}
	return topic.ID
}

// copyDatabase takes what a dump or a thief of the database takes.
func copyDatabase(t *testing.T, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	files, err := filepath.Glob(filepath.Join(from, "freshet.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database in %s: %v", from, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(file)), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// opened returns the credential that a catalog on the copied database can show to a data source.
func opened(t *testing.T, s *store.Store, topicID string, secret []byte) string {
	t.Helper()
	g := memory.New(memory.Options{})
	defer g.Close()
	c, err := catalog.New(t.Context(), s, g, catalog.Options{
		TokenSecret: secret, AdminEmail: freshet.FixedAdminEmail, AdminPassword: freshet.FixedAdminPassword, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	source, err := c.Source(t.Context(), topicID)
	if err != nil {
		return ""
	}
	return source.Topic.Publisher.Headers[0].Value.Reveal()
}

// forge signs what a good token says with another secret.
func forge(token string, secret []byte) string {
	signed := token[:strings.LastIndexByte(token, '.')]
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestACopyOfTheDatabaseOpensNothing(t *testing.T) {
	dir := t.TempDir()
	r := run(t, func(s *settings.Settings) { s.Data = dir })
	token := r.signIn(t)
	topic := r.sealedTopic(t, token)

	r.cancel() // files that nobody writes are a copy of one moment
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	stolen := copyDatabase(t, dir)
	r = run(t, func(s *settings.Settings) { s.Data = dir })
	if status := r.call(t, "GET", "/admin/users", token, nil, nil); status != http.StatusOK {
		t.Fatalf("the token itself gets %d", status)
	}
	s, err := store.Open(t.Context(), store.Location{Dir: stolen})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	loot := [][]byte{nil} // nil: what a fresh server on the copy would use
	for _, name := range []string{"token", "sealed-by"} {
		if secret, err := s.Secret(t.Context(), name); err == nil {
			loot = append(loot, secret)
		}
	}
	keys, err := keyfile.Read(filepath.Join(dir, keyfile.Name))
	if err != nil {
		t.Fatal(err)
	}
	inBase64 := []byte(base64.StdEncoding.EncodeToString(keys.Current))
	for _, file := range must(filepath.Glob(filepath.Join(stolen, "*")))(t) {
		if raw := must(os.ReadFile(file))(t); bytes.Contains(raw, inBase64) || bytes.Contains(raw, keys.Current) || bytes.Contains(raw, []byte(canary)) {
			t.Errorf("the secret, or what it seals, is in %s", filepath.Base(file))
		}
	}
	for _, secret := range loot {
		if got := opened(t, s, topic, secret); got != "" {
			t.Errorf("the copy opens the credential: %s", got)
		}
		if status := r.call(t, "GET", "/admin/users", forge(token, secret), nil, nil); secret != nil && status != http.StatusUnauthorized {
			t.Errorf("a token made from the copy gets %d", status)
		}
	}
}
