package store

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/freshet-io/freshet"
)

func newAPI(name string) *freshet.API {
	return &freshet.API{ID: freshet.NewID(), Name: name, RequestHost: name + ".example.com", RequestPath: "/" + name,
		StripPath: true, UpstreamURL: "http://" + name + ".internal/a?b", CreatedAt: now}
}

// registered is one API with a plugin, and a consumer with a key.
type registered struct {
	api        *freshet.API
	plugin     *freshet.Plugin
	consumer   *freshet.Consumer
	credential *freshet.Credential
	revision   int64
}

func register(t testing.TB, s *Store, name string) (r registered) {
	t.Helper()
	r.api = newAPI(name)
	r.plugin = &freshet.Plugin{ID: freshet.NewID(), APIID: r.api.ID, Name: "rate-limiting", Config: json.RawMessage(`{"minute":5}`), Enabled: true, CreatedAt: now}
	r.consumer = &freshet.Consumer{ID: freshet.NewID(), Username: name + " user", CustomID: name + "-1", CreatedAt: now}
	r.credential = &freshet.Credential{ID: freshet.NewID(), ConsumerID: r.consumer.ID, Key: freshet.Key("key of " + name), CreatedAt: now}
	update(t, s, func(tx *Tx) (err error) {
		if r.revision, err = tx.Registering(); err != nil {
			return err
		}
		if err := tx.CreateAPI(r.api, r.revision); err != nil {
			return err
		}
		if err := tx.CreatePlugin(r.plugin, r.revision); err != nil {
			return err
		}
		if err := tx.CreateConsumer(r.consumer, r.revision); err != nil {
			return err
		}
		return tx.CreateCredential(r.credential, r.revision)
	})
	return r
}

func TestRegistrationsComeBackTheSame(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		r := register(t, s, "quote")
		for _, ref := range []string{r.api.ID, "quote"} {
			wantSame(t, must(s.API(ctx, ref))(t), r.api)
		}
		for _, ref := range []string{r.consumer.ID, "quote user"} {
			wantSame(t, must(s.Consumer(ctx, ref))(t), r.consumer)
		}
		wantSame(t, must(s.Plugin(ctx, PluginFilter{ID: r.plugin.ID, APIID: r.api.ID}))(t), r.plugin)
		wantSame(t, must(s.Credential(ctx, CredentialFilter{Key: r.credential.Key}))(t), r.credential)

		r.api.Name, r.api.RequestHost, r.api.RequestPath, r.api.StripPath, r.api.PreserveHost = "other", "", "/other", false, true
		r.plugin.Config, r.plugin.Enabled, r.plugin.ConsumerID = json.RawMessage(`{"hour":1}`), false, r.consumer.ID
		r.consumer.Username, r.credential.Key = "", "another key"
		update(t, s, func(tx *Tx) error {
			revision, err := tx.Registering()
			if err != nil {
				return err
			}
			if err := tx.SaveAPI(r.api, revision); err != nil {
				return err
			}
			if err := tx.SavePlugin(r.plugin, revision); err != nil {
				return err
			}
			if err := tx.SaveConsumer(r.consumer, revision); err != nil {
				return err
			}
			return tx.SaveCredential(r.credential, revision)
		})
		wantSame(t, must(s.API(ctx, "other"))(t), r.api)
		wantSame(t, must(s.Plugin(ctx, PluginFilter{ConsumerID: r.consumer.ID}))(t), r.plugin)
		wantSame(t, must(s.Consumer(ctx, r.consumer.ID))(t), r.consumer)
		wantSame(t, must(s.Credential(ctx, CredentialFilter{ID: r.credential.ID}))(t), r.credential)
	})
}

func TestDeletingTakesAlongWhatBelongsToIt(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		first, second := register(t, s, "first"), register(t, s, "second")
		update(t, s, func(tx *Tx) error { return tx.DeleteAPI(first.api.ID) })
		update(t, s, func(tx *Tx) error {
			own := *second.plugin
			own.ID, own.ConsumerID = freshet.NewID(), second.consumer.ID
			return tx.CreatePlugin(&own, 9)
		})
		update(t, s, func(tx *Tx) error { return tx.DeleteConsumer(second.consumer.ID) })

		_, err := s.Plugin(ctx, PluginFilter{ID: first.plugin.ID})
		wantKind(t, err, freshet.NotFound)
		_, err = s.Credential(ctx, CredentialFilter{ID: second.credential.ID})
		wantKind(t, err, freshet.NotFound)
		left := must(s.Plugins(ctx, PluginFilter{}, Cursor{Limit: 10}))(t)
		wantSame(t, left.Items, []freshet.Plugin{*second.plugin})
	})
}

func TestThePlatformsOwnAPIsAreThereAndStay(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		for name, id := range map[string]string{"api": freshet.ManageAPIID, "publish": freshet.PublishAPIID} {
			a := must(s.API(ctx, name))(t)
			if a.ID != id || !a.BuiltIn || a.RequestPath != "/"+name {
				t.Errorf("%s is %+v", name, a)
			}
			err := s.Update(ctx, func(tx *Tx) error { return tx.DeleteAPI(id) })
			wantKind(t, err, freshet.NotFound)
		}
		if list := must(s.APIs(ctx, APIFilter{}, Cursor{Limit: 10}))(t); list.Total != 0 || len(list.Items) != 0 {
			t.Errorf("they are listed among the registered ones: %+v", list)
		}
		if list := must(s.APIs(ctx, APIFilter{BuiltIn: true}, Cursor{Limit: 10}))(t); list.Total != 2 {
			t.Errorf("they are not listed where asked for: %+v", list)
		}
	})
}

func TestWhatIsRegisteredIsUniqueWhateverTheCallerChecked(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		r := register(t, s, "quote")
		for what, write := range map[string]func(tx *Tx) error{
			"name": func(tx *Tx) error { a := newAPI("x"); a.Name = "quote"; return tx.CreateAPI(a, 9) },
			"host": func(tx *Tx) error { a := newAPI("x"); a.RequestHost = r.api.RequestHost; return tx.CreateAPI(a, 9) },
			"path": func(tx *Tx) error { a := newAPI("x"); a.RequestPath = "/quote"; return tx.CreateAPI(a, 9) },
			"plugin": func(tx *Tx) error {
				p := *r.plugin
				p.ID = freshet.NewID()
				return tx.CreatePlugin(&p, 9)
			},
			"username": func(tx *Tx) error {
				return tx.CreateConsumer(&freshet.Consumer{ID: freshet.NewID(), Username: "quote user"}, 9)
			},
			"custom_id": func(tx *Tx) error {
				return tx.CreateConsumer(&freshet.Consumer{ID: freshet.NewID(), CustomID: "quote-1"}, 9)
			},
			"key": func(tx *Tx) error { c := *r.credential; c.ID = freshet.NewID(); return tx.CreateCredential(&c, 9) },
		} {
			if err := s.Update(t.Context(), write); freshet.KindOf(err) != freshet.Conflict {
				t.Errorf("%s twice: %v", what, err)
			}
		}
		// Nothing is not a value that could be taken.
		update(t, s, func(tx *Tx) error {
			for i := range 2 {
				a := newAPI(fmt.Sprint("only-path-", i))
				a.RequestHost = ""
				if err := tx.CreateAPI(a, 9); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func TestARevisionCoversEverythingBeforeIt(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		first := register(t, s, "first")
		seen := must(s.GatewayRevision(ctx))(t)
		if seen.Newest != first.revision || seen.Deleted >= first.revision {
			t.Fatalf("the revision is %+v after %d", seen, first.revision)
		}
		second := register(t, s, "second")
		wantSame(t, must(s.APIsSince(ctx, seen.Newest))(t), []freshet.API{*second.api})
		wantSame(t, must(s.PluginsSince(ctx, seen.Newest))(t), []freshet.Plugin{*second.plugin})
		wantSame(t, must(s.ConsumersSince(ctx, seen.Newest))(t), []freshet.Consumer{*second.consumer})
		wantSame(t, must(s.CredentialsSince(ctx, seen.Newest))(t), []freshet.Credential{*second.credential})
		if all := must(s.APIsSince(ctx, 0))(t); len(all) != 4 {
			t.Errorf("there are %d APIs, built-in ones included", len(all))
		}
		update(t, s, func(tx *Tx) error {
			if _, err := tx.Unregistering(); err != nil {
				return err
			}
			return tx.DeleteAPI(first.api.ID)
		})
		if r := must(s.GatewayRevision(ctx))(t); r.Deleted != r.Newest || r.Newest != second.revision+1 {
			t.Errorf("a deletion left the revision at %+v", r)
		}
	})
}

func TestListsGoOnAfterACursorAndFilter(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		var all []freshet.API
		for i := range 5 {
			all = append(all, *register(t, s, fmt.Sprint("api", i)).api)
		}
		var got []freshet.API
		for after := ""; ; after = got[len(got)-1].ID {
			page := must(s.APIs(ctx, APIFilter{}, Cursor{After: after, Limit: 2}))(t)
			if page.Total != 5 {
				t.Fatalf("total is %d", page.Total)
			}
			if len(page.Items) == 0 {
				break
			}
			got = append(got, page.Items...)
		}
		wantSame(t, got, all)
		wantSame(t, must(s.APIs(ctx, APIFilter{Name: "api3"}, Cursor{Limit: 2}))(t), Listing[freshet.API]{Items: all[3:4], Total: 1})
		for _, odd := range []APIFilter{{Name: "x'; --"}, {Name: "nul\x00"}, {ID: "\xff"}} {
			if list := must(s.APIs(ctx, odd, Cursor{Limit: 2}))(t); list.Total != 0 {
				t.Errorf("%+v finds %d", odd, list.Total)
			}
		}
	})
}
