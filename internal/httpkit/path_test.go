package httpkit

import "testing"

func TestPathsInLogsHoldNoKeys(t *testing.T) {
	const id = "0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"
	for path, want := range map[string]string{
		"":                                       "",
		"/":                                      "/",
		"/api/v1/apps/" + id + "/subscriber_key": "/api/v1/apps/" + id + "/subscriber_key",
		"/api/v1/apps/kEy0123456789abc/publisher": "/api/v1/apps/…/publisher",
		"/http://ada:pw@example.com/quotes":       "/…//…/quotes",
		"/a/b\nc":                                 "/a/…",
	} {
		if got := SafePath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
