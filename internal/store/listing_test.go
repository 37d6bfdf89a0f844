package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/freshet-io/freshet"
)

func TestEveryPageOfTopicsIsTheSameSliceOfTheListing(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		_, app, first := household(t, s, "ada@example.com")
		_, _, _ = household(t, s, "someone@else.com")
		for size := range 8 {
			var all []string
			list := must(s.Topics(t.Context(), app.ID, Page{Limit: math.MaxInt64}))(t)
			for _, topic := range list.Items {
				all = append(all, topic.Name)
			}
			if len(all) != size+1 || all[0] != first.Name {
				t.Fatalf("the listing has %q", all)
			}
			for offset := range int64(size + 3) {
				for limit := range int64(size + 3) {
					wantTopics(t, s, app.ID, Page{offset, limit}, all)
				}
			}
			for _, page := range []Page{{1 << 62, 100}, {math.MaxInt64, math.MaxInt64}, {0, math.MaxInt64},
				{1, math.MaxInt64}, {-1, 3}, {math.MinInt64, -5}, {2, -1}} {
				wantTopics(t, s, app.ID, page, all)
			}
			update(t, s, func(tx *Tx) error { return tx.CreateTopic(newTopic(app.ID, fmt.Sprint("topic ", size))) })
		}
	})
}

func wantTopics(t *testing.T, s *Store, appID string, page Page, all []string) {
	t.Helper()
	list, err := s.Topics(t.Context(), appID, page)
	if err != nil {
		t.Fatalf("page %v of %d: %v", page, len(all), err)
	}
	from := min(max(page.Offset, 0), int64(len(all)))
	to := from + min(max(page.Limit, 0), int64(len(all))-from)
	var got []string
	for _, topic := range list.Items {
		got = append(got, topic.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(all[from:to]) || list.Total != int64(len(all)) || list.App.ID != appID {
		t.Errorf("page %v of %q is %q with total %d", page, all, got, list.Total)
	}
}

// The benchmark shows the time; the number of steps in SQLite's machine does not depend on who else is busy.
func TestTheLastPageOfTopicsCostsNoMoreThanTheFirst(t *testing.T) {
	t.Parallel()
	s := open(t, Location{Dir: t.TempDir()})
	_, app, _ := household(t, s, "ada@example.com")
	const n = 2000
	fill(t, s, app.ID, n-1)
	first := pageSteps(t, s, app.ID, 0)
	if last := pageSteps(t, s, app.ID, n-20); float64(last) > 1.5*float64(first) {
		t.Errorf("the last page takes %d steps, the first %d", last, first)
	}
	if beyond := pageSteps(t, s, app.ID, maxPage); beyond > first {
		t.Errorf("a page beyond the end takes %d steps, the first %d", beyond, first)
	}
}

func pageSteps(t *testing.T, s *Store, appID string, offset int64) (steps int) {
	t.Helper()
	c, err := s.read.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Raw(func(raw any) error {
		stmt, _, err := raw.(driver.Conn).Raw().Prepare(questionMarks(topicPage))
		if err != nil {
			return err
		}
		defer stmt.Close()
		if err := stmt.BindText(1, appID); err != nil {
			return err
		}
		if err := stmt.BindInt64(2, offset); err != nil {
			return err
		}
		if err := stmt.BindInt64(3, 20); err != nil {
			return err
		}
		for stmt.Step() {
		}
		steps = stmt.Status(sqlite3.STMTSTATUS_VM_STEP, false)
		return stmt.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestUsersAreFoundByAnyPartOfEmailOrNameInAnyCase(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		people := []*Account{newAccount("Ada@example.com"), newAccount("bob_b@example.com"),
			newAccount("100%@example.com"), newAccount(`back\slash@example.org`)}
		people[1].FirstName, people[1].LastName = "Zoë", "ÅNGSTRÖM"
		people[2].FirstName, people[2].LastName = "Ivan", "Петров"
		people[3].FirstName, people[3].LastName = "O'Neil", "Bobby"
		for _, p := range people {
			update(t, s, func(tx *Tx) error { return tx.CreateUser(p) })
		}
		for query, want := range map[string]string{
			"":                          "0123",
			"ADA@":                      "0",
			"example.com":               "012",
			"ångström":                  "1",
			"zoË å":                     "1",
			"ПЕТР":                      "2",
			"o'n":                       "3",
			"%":                         "2",
			"_":                         "1",
			`\`:                         "3",
			"a_a":                       "",
			"bob":                       "13",
			"comAda":                    "",
			"com\nAda":                  "0", // where the fields meet; nobody types a line break
			"nul\x00":                   "",
			"bad utf-8 \xff":            "",
			"'; --":                     "",
			strings.Repeat("%", 60_000): "",
		} {
			list, err := s.Users(t.Context(), query, Page{Limit: 10})
			if err != nil {
				t.Fatalf("%.20q: %v", query, err)
			}
			got := ""
			for _, u := range list.Items {
				for i, p := range people {
					if u.ID == p.ID {
						got += fmt.Sprint(i)
					}
				}
			}
			if got != want || list.Total != int64(len(want)) {
				t.Errorf("%.20q finds %q of %d, want %q", query, got, list.Total, want)
			}
		}
	})
}

func TestTheTotalIsKnownOnAnEmptyPage(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		var users, apps, entries []string
		for i := range 5 {
			user := newAccount(fmt.Sprintf("ada%d@example.com", i))
			users = append(users, user.ID)
			app := newApp(users[0], fmt.Sprint("app ", i))
			apps = append(apps, app.ID)
			entry := AuditEntry{ID: freshet.NewID(), At: now, Action: "x", Detail: "{}"}
			entries = append([]string{entry.ID}, entries...)
			update(t, s, func(tx *Tx) error {
				if err := tx.CreateUser(user); err != nil {
					return err
				}
				if err := tx.CreateApp(app); err != nil {
					return err
				}
				return tx.AppendAudit(entry)
			})
		}
		for name, list := range map[string]struct {
			want []string
			page func(context.Context, Page) ([]string, int64, error)
		}{
			"Users": {users, func(ctx context.Context, p Page) ([]string, int64, error) {
				l, err := s.Users(ctx, "", p)
				return ids(l.Items, func(u freshet.User) string { return u.ID }), l.Total, err
			}},
			"Users matching": {users, func(ctx context.Context, p Page) ([]string, int64, error) {
				l, err := s.Users(ctx, "ada", p)
				return ids(l.Items, func(u freshet.User) string { return u.ID }), l.Total, err
			}},
			"Apps": {apps, func(ctx context.Context, p Page) ([]string, int64, error) {
				l, err := s.Apps(ctx, users[0], p)
				return ids(l.Items, func(a freshet.App) string { return a.ID }), l.Total, err
			}},
			"Audit, newest first": {entries, func(ctx context.Context, p Page) ([]string, int64, error) {
				l, err := s.Audit(ctx, p)
				return ids(l.Items, func(e AuditEntry) string { return e.ID }), l.Total, err
			}},
		} {
			for _, c := range []struct {
				page     Page
				from, to int
			}{
				{Page{0, 2}, 0, 2}, {Page{2, 2}, 2, 4}, {Page{4, 2}, 4, 5}, {Page{5, 2}, 5, 5}, {Page{0, 0}, 0, 0},
				{Page{1 << 62, 100}, 5, 5}, {Page{math.MaxInt64, math.MaxInt64}, 5, 5},
				{Page{0, math.MaxInt64}, 0, 5}, {Page{-1, -1}, 0, 0},
			} {
				got, total, err := list.page(ctx, c.page)
				if err != nil || total != 5 || fmt.Sprint(got) != fmt.Sprint(list.want[c.from:c.to]) {
					t.Errorf("%s %v: %v of %d, %v; want %v", name, c.page, got, total, err, list.want[c.from:c.to])
				}
			}
		}
	})
}

func ids[T any](items []T, id func(T) string) (all []string) {
	for _, item := range items {
		all = append(all, id(item))
	}
	return all
}
