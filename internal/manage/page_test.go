package manage

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAListingGoesPageByPageAlongItsLinks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	app := c.newApp().text("id")
	var want []any
	for range 5 {
		want = append(want, c.newTopic(app).at("id"))
	}
	path := "/v1/apps/" + app + "/topics"
	links := func(self, next, last int) []any {
		at := func(rel string, n int) any {
			return map[string]any{"rel": rel, "href": fmt.Sprintf("%s?page=%d&per_page=2", path, n)}
		}
		all := []any{at("self", self), at("first", 0)}
		if next > 0 {
			all = append(all, at("next", next))
		}
		return append(all, at("last", last))
	}
	var got []any
	next := path + "?per_page=2"
	for i := range 3 {
		a := c.call("GET", next[len("/v1"):], nil).want(200)
		for _, item := range a.at("items").([]any) {
			got = append(got, item.(map[string]any)["id"])
		}
		if a.at("page") != float64(i) || a.at("per_page") != 2.0 || a.at("total") != 5.0 {
			t.Errorf("page %d: %s", i, a.body)
		}
		following := i + 1
		if i == 2 {
			following = 0
		}
		if diff := cmp.Diff(links(i, following, 2), a.at("links")); diff != "" {
			t.Errorf("page %d: %s", i, diff)
		}
		next = a.link("next")
	}
	if next != "" {
		t.Errorf("the last page has a next one: %s", next)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	beyond := c.call("GET", "/apps/"+app+"/topics?page=1000000000&per_page=2", nil).want(200)
	if items := beyond.at("items").([]any); len(items) != 0 || beyond.at("total") != 5.0 || beyond.link("next") != "" {
		t.Errorf("beyond the end: %s", beyond.body)
	}
}

func TestAnEmptyListingIsOneEmptyPage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.signUp()
	for path, href := range map[string]string{
		"/apps": "/v1/apps?page=0&per_page=100", "/users/" + c.id + "/apps": "/v1/users/" + c.id + "/apps?page=0&per_page=100",
	} {
		a := c.call("GET", path, nil).want(200)
		for _, rel := range []string{"self", "first", "last"} {
			if got := a.link(rel); got != href {
				t.Errorf("%s: %s is %q", path, rel, got)
			}
		}
		if len(a.at("items").([]any)) != 0 || a.at("total") != 0.0 || a.at("page") != 0.0 || a.at("per_page") != 100.0 || a.link("next") != "" {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestNonsenseInAQueryIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := s.admin()
	app := admin.newApp().text("id")
	for _, path := range []string{"/apps", "/apps/" + app + "/topics", "/users/" + admin.id + "/apps", "/admin/users", "/admin/audit"} {
		for _, value := range []string{"-1", "1.5", "abc", "%D9%A3", "9223372036854775808", "4611686018427387904", "1e3", "0x10", "1_0", "",
			"%20", "%2B%20", "1%00", "1,2", "true", "null", "1;2", "%zz"} {
			for _, name := range []string{"page", "per_page"} {
				a := admin.call("GET", path+"?"+name+"="+value, nil).want(400)
				if value != "%zz" && value != "1;2" && a.faults()[name] == "" {
					t.Errorf("%s?%s=%s: %s", path, name, value, a.body)
				}
			}
		}
		for query, name := range map[string]string{
			"per_page=0": "per_page", "per_page=1001": "per_page", "per_page=1000000000": "per_page", "page=1000000001": "page",
			"page=1&page=2": "page", "per_page=1&per_page=1": "per_page", "page=abc&page=1": "page", "page": "page", "per_page&page=1": "per_page",
		} {
			if a := admin.call("GET", path+"?"+query, nil).want(400); a.faults()[name] == "" || len(a.faults()) != 1 {
				t.Errorf("%s?%s: %s", path, query, a.body)
			}
		}
		for _, query := range []string{"page=0", "per_page=1", "per_page=1000", "page=0&per_page=1000", "page=7&per_page=3", "_=123", "page=01"} {
			admin.call("GET", path+"?"+query, nil).want(200)
		}
	}
}
