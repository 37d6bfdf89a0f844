package httpkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
)

func TestEveryKindOfFailureHasAStatus(t *testing.T) {
	for _, kind := range freshet.Kinds() {
		status, ok := statuses[kind]
		if !ok || status < 400 || status > 599 {
			t.Errorf("kind %d has status %d", kind, status)
		}
		if got := Status(freshet.Errorf(kind, "x")); got != status {
			t.Errorf("kind %d: %d", kind, got)
		}
	}
	if len(statuses) != len(freshet.Kinds()) {
		t.Errorf("%d kinds in the table, %d in all", len(statuses), len(freshet.Kinds()))
	}
}

func TestOnlyAClassifiedErrorIsShown(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7: refused")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"unknown":            {cause, internalMessage},
		"nil":                {nil, internalMessage},
		"internal":           {freshet.Wrap(freshet.Internal, cause, "shown?"), internalMessage},
		"wrapped":            {fmt.Errorf("outer: %w", freshet.Wrap(freshet.NotFound, cause, "There is no such app")), "There is no such app"},
		"kind without words": {&freshet.Error{Kind: freshet.NotFound}, "Not Found"},
	} {
		if got := Body(test.err).Message; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestAFailureOfOursIsLoggedWithItsCauseAndWithoutTheQuery(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	h := Serve(logger, func(http.ResponseWriter, *http.Request) error {
		return freshet.Wrap(freshet.Unavailable, errors.New("the cause"), "Try again")
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/a?X-Sd-Subscriber-Key=hunter2", nil))
	if w.Code != 503 || w.Body.String() != "{\"message\":\"Try again\"}\n" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if text := log.String(); !strings.Contains(text, "the cause") || strings.Contains(text, "hunter2") {
		t.Errorf("logged %s", text)
	}

	log.Reset()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", "/a", nil))
	Serve(logger, func(http.ResponseWriter, *http.Request) error { return freshet.Errorf(freshet.Invalid, "yours") }).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/a", nil))
	if log.Len() > 0 {
		t.Errorf("logged what is not our failure: %s", &log)
	}
}

func TestWhatIsInTheLogAlreadyIsNotLoggedForEveryRequest(t *testing.T) {
	var log bytes.Buffer
	h := Serve(slog.New(slog.NewTextHandler(&log, nil)), func(http.ResponseWriter, *http.Request) error {
		return &freshet.Error{Kind: freshet.Unavailable, Msg: "The disk is full", Logged: true}
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/a", nil))
	if w.Code != 503 || log.Len() > 0 {
		t.Errorf("%d, logged %s", w.Code, &log)
	}
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Hour: "3600"} {
		h := http.Header{}
		SetErrorHeaders(h, &freshet.Error{Kind: freshet.TooManyRequests, RetryAfter: wait})
		if got := h.Get("Retry-After"); got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
	}
}

func TestABodyErrorSaysWhetherItWasTooLarge(t *testing.T) {
	w := httptest.NewRecorder()
	_, err := io.ReadAll(http.MaxBytesReader(w, io.NopCloser(strings.NewReader("0123456789")), 5))
	if got := BodyError(err); Status(got) != 413 || !strings.Contains(Body(got).Message, "5 bytes") {
		t.Errorf("%v", got)
	}
	if got := BodyError(io.ErrUnexpectedEOF); Status(got) != 400 || strings.Contains(Body(got).Message, "EOF") {
		t.Errorf("%v", got)
	}
}

func TestJSONIsNotEscapedForHTML(t *testing.T) {
	w := httptest.NewRecorder()
	WriteJSON(w, 200, map[string]string{"a": "<&>"})
	if got := w.Body.String(); got != "{\"a\":\"<&>\"}\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s", got)
	}
}
