package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/store"
)

func newRegistry(t *testing.T, o Options) (*Registry, *memory.Grid) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Location{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	notices := memory.New(memory.Options{})
	t.Cleanup(func() { notices.Close() })
	o.Log = slog.New(slog.DiscardHandler)
	return New(s, notices, o), notices
}

func text(s string) *string { return &s }

func TestAnErrorOfTheRegistryIsOneOfTheProgram(t *testing.T) {
	r, _ := newRegistry(t, Options{})
	_, err := r.WriteAPI(t.Context(), APIWrite{Change: APIChange{Name: text("a b"), RequestHost: text("*a")}})
	e, ok := errors.AsType[*freshet.Error](fmt.Errorf("wrapped: %w", err))
	want := []freshet.FieldError{
		{Field: "name", Message: "must only contain alphanumeric and '., -, _, ~' characters"},
		{Field: "request_host", Message: "Invalid wildcard placement: *a"},
		{Field: "upstream_url", Message: "is required"},
	}
	if !ok || e.Kind != freshet.Invalid || !reflect.DeepEqual(e.Fields, want) {
		t.Errorf("got %v", err)
	}
	sent, err := json.Marshal(err)
	if err != nil {
		t.Fatal(err)
	}
	var again Error
	if err := json.Unmarshal(sent, &again); err != nil || !again.Faults[1].Sentence || again.Faults[2].Sentence {
		t.Errorf("another node reads %+v, %v", again, err)
	}
	if _, err := r.API(t.Context(), "none"); freshet.KindOf(err) != freshet.NotFound || !strings.Contains(err.Error(), "Not found") {
		t.Errorf("what does not exist: %v", err)
	}
}

// table stands for the gateway's.
type table struct {
	seen    int64
	notices atomic.Int64
	early   bool // a notice came before it caught up
}

func (f *table) CatchUp(_ context.Context, revision int64) error {
	f.seen, f.early = revision, f.notices.Load() > 0
	return errors.New("it is away")
}

func TestWhoFollowsCatchesUpBeforeTheOthersAreTold(t *testing.T) {
	r, notices := newRegistry(t, Options{})
	var follower table
	defer notices.OnNotice(func(n grid.Notice) {
		if n.Scope == grid.ScopeGateway {
			follower.notices.Add(1)
		}
	})()
	stop := r.Follow(&follower)
	if _, err := r.WriteConsumer(t.Context(), ConsumerWrite{Change: ConsumerChange{Username: text("bob")}}); err != nil {
		t.Fatal(err)
	}
	now, err := r.Revision(t.Context())
	if err != nil || follower.seen != now.Newest || follower.early {
		t.Errorf("it saw %d of %d: %v", follower.seen, now.Newest, err)
	}
	rows, err := r.Since(t.Context(), now.Newest-1)
	if err != nil || len(rows.Consumers) != 1 || len(rows.APIs)+len(rows.Plugins)+len(rows.Credentials) != 0 {
		t.Errorf("since then there is %+v, %v", rows, err)
	}
	stop()
	if _, err := r.WriteConsumer(t.Context(), ConsumerWrite{Act: Delete, Consumer: "bob"}); err != nil {
		t.Fatal(err)
	}
	if follower.seen != now.Newest {
		t.Error("it was asked after it had stopped")
	}
}

func TestFormsAndObjectsSayTheSame(t *testing.T) {
	form, object := Values{}, Values{}
	form.AddForm(url.Values{"name": {"cors"}, "enabled": {"TRUE"}, "config.methods[2]": {"PUT"}, "config.methods[1]": {"GET"}, "config.max_age": {"7"}})
	object.AddObject(map[string]any{"name": "cors", "enabled": true, "config.max_age": json.Number("7"), "config": map[string]any{"methods": []any{"GET", "PUT"}}})
	var made [2]freshet.Plugin
	for i, v := range []Values{form, object} {
		change := v.Plugin()
		change.APIID = text(freshet.ManageAPIID)
		if err := change.apply(&made[i], Create); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(made[0], made[1]) {
		t.Errorf("%+v is not %+v", made[0], made[1])
	}
}

func TestNumbersOfAllSurfacesAreRead(t *testing.T) {
	for _, v := range []any{"60", " 60 ", "6e1", json.Number("60"), json.Number("60.0"), float64(60), int64(60)} {
		if n, ok := readNumber(v); !ok || n != int64(60) {
			t.Errorf("%T %v is read as %v, %v", v, v, n, ok)
		}
	}
	for _, v := range []any{"", "x", 1.5, "1.5", json.Number("1e300"), float64(1 << 60), int64(1 << 60), true, nil, blank{}} {
		if n, ok := readNumber(v); ok {
			t.Errorf("%T %v is read as %v", v, v, n)
		}
	}
}

func TestAConfigurationThatNobodyCanReadIsReplaced(t *testing.T) {
	for _, raw := range []string{"null", "7", "{", ""} {
		p := freshet.Plugin{Name: "rate-limiting", APIID: freshet.ManageAPIID, Config: json.RawMessage(raw)}
		change := PluginChange{Config: map[string]any{"minute": "5"}}
		if err := change.apply(&p, Update); err != nil || string(p.Config) != `{"minute":5}` {
			t.Errorf("%q becomes %s, %v", raw, p.Config, err)
		}
	}
}
