package client

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func TestSignaturesAreThoseOfThePublicClients(t *testing.T) {
	for _, c := range []struct {
		beacon, secret, url, want string
		ms                        int64
	}{
		{"11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "http://myRestservice.com/stocks",
			"V5SMXTL46gye3B0GQoyDohe3g+Nx5r945vb32hwEY+fWq3Qbz3XPbXGw2RqCCIYs5V5P+FXm6poGgoTefIHL2A==", 1500000000000},
		{"0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "https://api.example.com:8443/caf%C3%A9/prix?q=été",
			"KYYDXYOBG+rBI2XkXTduyLRKgnh1Z+EUxtg8suPTTokBa4e18DN2fF5Io4GjwHHrUdFk5UrVjpWfgByqRGv9pA==", 1},
	} {
		s, err := newSigner(base64.StdEncoding.EncodeToString([]byte(c.beacon + c.secret)))
		if err != nil {
			t.Fatal(err)
		}
		_, signature := s.sign(c.url, time.UnixMilli(c.ms))
		raw, err := base64.StdEncoding.DecodeString(signature)
		if err != nil || string(raw) != c.beacon+c.want {
			t.Errorf("%s: %s, %v", c.url, raw, err)
		}
	}
}

func TestAddressesOfStreams(t *testing.T) {
	c, err := New(Options{BaseURL: "https://api.example.com/freshet/", SubscriberURL: "https://stream.example.com/live/"})
	if err != nil {
		t.Fatal(err)
	}
	const topic = "0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"
	for asked, want := range map[string]source{
		topic: {"https://stream.example.com/live/v1/topics/" + topic, "/v1/topics/" + topic},
		"https://stream.example.com/live/v1/topics/" + topic:    {"https://stream.example.com/live/v1/topics/" + topic, "/v1/topics/" + topic},
		"http://quotes.example.com//a/../b?x=%2F&y=1":           {"https://stream.example.com/live/http://quotes.example.com//a/../b?x=%2F&y=1", "http://quotes.example.com//a/../b?x=%2F&y=1"},
		"https://stream.example.com/live/http://q.example.com/": {"https://stream.example.com/live/http://q.example.com/", "http://q.example.com/"},
	} {
		if got, err := c.locate(asked); err != nil || got != want {
			t.Errorf("%s: %+v, %v", asked, got, err)
		}
	}
	for _, asked := range []string{"", "a/b", "../x", "a?b", "ftp://x", "http://a b", "http://a/#b"} {
		if got, err := c.locate(asked); err == nil {
			t.Errorf("%q is found at %+v", asked, got)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{BaseURL: "localhost:8000"}, {BaseURL: "ftp://x"}, {BaseURL: "http://u:p@x"}, {SubscriberURL: "http://x?y"}, {AdminURL: "http://"}, {BaseURL: "http://%zz"},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	c, err := New(Options{BaseURL: "https://[::1]:8000"})
	if err != nil || c.SubscriberURL() != "https://[::1]:6080" || c.AdminURL() != "https://[::1]:8001" {
		t.Errorf("%+v, %v", c, err)
	}
}
