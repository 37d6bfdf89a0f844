package e2e

import (
	"bufio"
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// follow opens a stream and returns its first event, with the stream still open until the test ends.
func follow(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	var event strings.Builder
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && (lines.Text() != "" || !strings.Contains(event.String(), "data:")) {
		event.WriteString(lines.Text() + "\n")
	}
	return event.String()
}

// topicWithDocument returns the URL of a topic that has something to show.
func topicWithDocument(t *testing.T, p *process) string {
	t.Helper()
	a := signIn(t, p)
	made := a.createApp("Editions")
	var topic named
	a.must(http.StatusCreated, "POST", "/api/v1/apps/"+made.ID+"/topics", postTopic("T"), &topic)
	r, err := http.NewRequestWithContext(t.Context(), "POST", a.base+"/publish/v1/topics/"+topic.ID, strings.NewReader(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Sd-Publisher-Key", made.PublisherKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("publishing answers %d", answer.StatusCode)
	}
	return "http://" + p.Subscriber + "/v1/topics/" + topic.ID
}

// subscribe opens n streams, all of which must be served, and returns the first event of one more.
func subscribe(t *testing.T, url string, n int) string {
	t.Helper()
	for i := range n {
		if event := follow(t, url); !strings.Contains(event, "event: snapshot") && !strings.Contains(event, "event:snapshot") {
			t.Fatalf("subscriber %d gets %q", i+1, event)
		}
	}
	return follow(t, url)
}

func TestTheBetaEditionServesTenAndTellsTheEleventh(t *testing.T) {
	p := start(t, "--distribution", "container")
	if edition := p.Await("ready")["edition"]; edition != "beta" {
		t.Errorf("ready says edition %v", edition)
	}
	eleventh := subscribe(t, topicWithDocument(t, p), 10)
	if !strings.Contains(eleventh, `"code":40121`) || !strings.Contains(eleventh, "the beta edition of this server allows 10") {
		t.Errorf("the eleventh gets %q", eleventh)
	}
}

func TestThePlainBinaryHasNoSuchLimit(t *testing.T) {
	p := start(t)
	if event := subscribe(t, topicWithDocument(t, p), 11); strings.Contains(event, "error") {
		t.Errorf("the twelfth gets %q", event)
	}
}

// makeKey makes an issuer and one key of it.
func makeKey(t *testing.T, flags ...string) (publicKey, key string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "issuer.pem")
	made := freshet(t, "activation", "keygen", "--out", file)
	issued := freshet(t, append([]string{"activation", "issue", "--private-key", file, "--holder", "Example Ltd"}, flags...)...)
	if made.code != 0 || issued.code != 0 {
		t.Fatalf("keygen: %+v, issue: %+v", made, issued)
	}
	return strings.TrimSpace(made.stdout), strings.TrimSpace(issued.stdout)
}

func TestAnActivationKeyAllowsWhatItNames(t *testing.T) {
	public, key := makeKey(t, "--expires", "2099-12-31", "--connections", "12", "--edition", "team")
	cmd := command(t, serveArgs("--distribution", "container")...)
	cmd.Env = append(cmd.Env, "FRESHET_ACTIVATION_PUBLIC_KEY="+public, "FRESHET_ACTIVATION_KEY="+key)
	p := launch(t, cmd)
	ready := p.Await("ready")
	p.Gateway, p.Subscriber = ready["gateway"].(string), ready["subscriber"].(string)
	if event := subscribe(t, topicWithDocument(t, p), 12); !strings.Contains(event, `"code":40121`) || !strings.Contains(event, "the team edition of this server allows 12") {
		t.Errorf("the thirteenth gets %q", event)
	}
	if holder := p.Await("activated")["holder"]; holder != "Example Ltd" {
		t.Errorf("activated for %v", holder)
	}
	if strings.Contains(p.Output(), key) {
		t.Error("the key is in the log")
	}
}

func TestABadActivationKeyKeepsTheServerFromStarting(t *testing.T) {
	public, expired := makeKey(t, "--from", "2001-01-01", "--expires", "2001-12-31")
	_, foreign := makeKey(t, "--expires", "2099-12-31")
	for name, c := range map[string]struct {
		key  string
		code int
		line string
	}{
		"expired": {expired, 3, "freshet: The activation key of Example Ltd expired on 2002-01-01 00:00 UTC\n"},
		"foreign": {foreign, 3, "freshet: The activation key was changed, or made by an issuer that is not trusted here\n"},
		"damaged": {foreign[:60], 2, "freshet: FRESHET_ACTIVATION_KEY: activation.key cannot be used. This is no activation key: it must have the form freshet-activation-1.….…\n"},
	} {
		cmd := command(t, serveArgs("--distribution", "container")...)
		cmd.Env = append(cmd.Env, "FRESHET_ACTIVATION_PUBLIC_KEY="+public, "FRESHET_ACTIVATION_KEY="+c.key)
		got := runToEnd(t, cmd)
		if got.code != c.code || got.stderr != c.line {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
