package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestRequestsReachTheAPIThatTheirFirstTwoSegmentsName(t *testing.T) {
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, name+" "+r.URL.EscapedPath())
		})
	}
	g, err := New(Options{Log: slog.New(slog.DiscardHandler), APIs: []API{
		{Name: "api", Version: "v1", Handler: echo("manage")},
		{Name: "publish", Version: "v1", Handler: echo("publish")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()

	const nowhere = `{"message":"API not found with these values","request_path":`
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/api/v1/apps", "manage /apps", 200},
		{"/api/latest/apps", "manage /apps", 200},
		{"/api/v1", "manage ", 200},
		{"/publish/v1/topics/x%2Fy", "publish /topics/x%2Fy", 200},
		{"/", nowhere + `"/"}` + "\n", 404},
		{"/api", nowhere + `"/api"}` + "\n", 404},
		{"/api/v1x/apps", nowhere + `"/api/v1x/apps"}` + "\n", 404},
		{"/api/v2/apps", nowhere + `"/api/v2/apps"}` + "\n", 404},
		{"/API/v1/apps", nowhere + `"/API/v1/apps"}` + "\n", 404},
		{"//api/v1/apps", nowhere + `"//api/v1/apps"}` + "\n", 404},
		{"/x/../api/v1/apps", nowhere + `"/x/../api/v1/apps"}` + "\n", 404},
		{"/api%2Fv1/apps", nowhere + `"/api%2Fv1/apps"}` + "\n", 404},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		target, err := url.ParseRequestURI(c.path) // as net/http reads a request line
		if err != nil {
			t.Fatal(err)
		}
		r.URL = target
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s: got %d %q, want %d %q", c.path, w.Code, w.Body, c.status, c.body)
		}
	}
}
