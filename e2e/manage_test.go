package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	live "github.com/freshet-io/freshet/client"
)

func TestWhatWasAcknowledgedSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var appID string
	acknowledged := map[string]bool{}
	for round := range 3 {
		p := start(t, "--data", data)
		a := signIn(t, p)
		if appID == "" {
			appID = a.createApp("burst").ID
		}
		for _, id := range burst(t, p, a, appID, fmt.Sprintf("round %d", round)) {
			acknowledged[id] = true
		}
	}
	a := signIn(t, start(t, "--data", data))
	kept := map[string]bool{}
	for page, more := 0, true; more; page++ {
		var list struct {
			Items []named
			Total int
		}
		a.must(http.StatusOK, "GET", fmt.Sprintf("/api/v1/apps/%s/topics?per_page=1000&page=%d", appID, page), nil, &list)
		for _, topic := range list.Items {
			kept[topic.ID] = true
		}
		more = len(list.Items) > 0 && len(kept) < list.Total
	}
	lost := 0
	for id := range acknowledged {
		if !kept[id] {
			lost++
		}
	}
	if lost > 0 || len(acknowledged) < 60 {
		t.Errorf("%d of %d acknowledged topics are lost", lost, len(acknowledged))
	}
}

// burst creates topics from several sides, kills the server in the middle, and returns what was acknowledged.
func burst(t *testing.T, p *process, a *api, appID, name string) []string {
	t.Helper()
	var (
		mu  sync.Mutex
		ids []string
		wg  sync.WaitGroup
	)
	for worker := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				var made named
				status, err := a.call("POST", "/api/v1/apps/"+appID+"/topics", postTopic(fmt.Sprintf("%s, %d of %d", name, n, worker)), &made)
				if err != nil {
					return // killed
				}
				if status != http.StatusCreated {
					t.Errorf("creating a topic answered %d", status)
					return
				}
				mu.Lock()
				ids = append(ids, made.ID)
				enough := len(ids) == 25
				mu.Unlock()
				if enough {
					go p.Kill() // while the others go on
				}
			}
		})
	}
	wg.Wait()
	return ids
}

func TestTokensAndTopicsSurviveARestart(t *testing.T) {
	data := t.TempDir()
	first := start(t, "--data", data)
	a := signIn(t, first)
	made := a.createApp("lasting")
	if code := first.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	second := start(t, "--data", data)
	a.base = "http://" + second.Gateway
	a.must(http.StatusOK, "GET", "/api/v1/apps/"+made.ID, nil, nil)
	a.must(http.StatusNoContent, "DELETE", "/api/v1/session", nil, nil)
	a.must(http.StatusUnauthorized, "GET", "/api/v1/apps/"+made.ID, nil, nil)
}

func TestProductionRefusesTheFixedAdminPassword(t *testing.T) {
	data := t.TempDir()
	if code := start(t, "--data", data).Stop(); code != 0 { // development creates the admin with it
		t.Fatalf("exit code %d", code)
	}
	for _, dir := range []string{data, t.TempDir()} {
		refused := freshet(t, serveArgs("--data", dir, "--environment", "production")...)
		last := refused.stderr[strings.LastIndex(strings.TrimSpace(refused.stderr), "\n")+1:]
		if refused.code != 2 || !strings.Contains(last, "--admin-password") {
			t.Errorf("exit code %d, said %q", refused.code, refused.stderr)
		}
	}
	p := start(t, "--data", data, "--environment", "production", "--admin-password", "something better")
	a := &api{t: t, base: "http://" + p.Gateway}
	old := map[string]string{"email": "admin@freshet.local", "password": "freshet-admin"}
	a.must(http.StatusUnauthorized, "PUT", "/api/v1/session", old, nil)
	a.must(http.StatusOK, "PUT", "/api/v1/session", map[string]string{"email": "admin@freshet.local", "password": "something better"}, nil)
	if strings.Contains(p.Output(), "something better") {
		t.Error("the password is in the log")
	}
}

func TestDeletingWhatIsAboveAStreamEndsIt(t *testing.T) {
	p := start(t)
	a := signIn(t, p)
	stream, err := live.New(live.Options{SubscriberURL: "http://" + p.Subscriber})
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"topic", "app"} {
		made := a.createApp("with streams, " + what)
		var topic named
		a.must(http.StatusCreated, "POST", "/api/v1/apps/"+made.ID+"/topics", postTopic("stream"), &topic)
		path := map[string]string{"topic": "/api/v1/topics/" + topic.ID, "app": "/api/v1/apps/" + made.ID}[what]
		var end error
		o := live.SubscribeOptions{OnState: func(s live.State) {
			if s.Phase == live.Open {
				a.must(http.StatusNoContent, "DELETE", path, nil, nil)
			}
		}}
		for _, err := range stream.Subscribe(t.Context(), topic.ID, o) {
			end = err
		}
		if e, ok := errors.AsType[*live.StreamError](end); !ok || e.Code != live.TopicGone {
			t.Errorf("%s deleted: the stream ended with %v", what, end)
		}
	}
}
