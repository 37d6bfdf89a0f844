package httpkit

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestTheFirstMiddlewareSeesARequestFirst(t *testing.T) {
	var order []string
	note := func(name string) Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				order = append(order, name)
				next.ServeHTTP(w, r)
			})
		}
	}
	h := Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { order = append(order, "handler") }), note("a"), note("b"))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if got := strings.Join(order, " "); got != "a b handler" {
		t.Errorf("order %s", got)
	}
}

func TestAPanicIsAnInternalErrorWithoutDetails(t *testing.T) {
	var log bytes.Buffer
	h := Recover(slog.New(slog.NewTextHandler(&log, nil)))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the reason") }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/a?key=hunter2", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "reason") || !strings.Contains(w.Body.String(), `"message"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if text := log.String(); !strings.Contains(text, "the reason") || !strings.Contains(text, "middleware_test.go") || strings.Contains(text, "hunter2") {
		t.Errorf("logged %s", text)
	}
}

func TestAnAbortedHandlerStaysAborted(t *testing.T) {
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("the panic was swallowed")
		}
	}()
	h := Recover(quiet())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
}

func TestTheAccessLogHasStatusesAndNoQueries(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	answers := map[string]func(http.ResponseWriter){
		"status=204": func(w http.ResponseWriter) { w.WriteHeader(204) },
		"status=200": func(w http.ResponseWriter) { fmt.Fprint(w, "x"); _ = http.NewResponseController(w).Flush() },
		"status=404": func(w http.ResponseWriter) { w.WriteHeader(404); fmt.Fprint(w, "x") },
	}
	for want, answer := range answers {
		log.Reset()
		h := AccessLog(logger)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/a?key=hunter2", nil))
		if text := log.String(); !strings.Contains(text, want) || !strings.Contains(text, "path=/a ") || strings.Contains(text, "hunter2") {
			t.Errorf("want %s, logged %s", want, text)
		}
	}
	log.Reset()
	AccessLog(logger)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if !strings.Contains(log.String(), "status=200") {
		t.Errorf("a handler that writes nothing: %s", &log)
	}
}

func TestTooManyHeaderFieldsAreRefused(t *testing.T) {
	h := LimitHeaders(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	for n, want := range map[int]int{0: 204, MaxHeaderFields: 204, MaxHeaderFields + 1: 431, 3000: 431} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		for i := range n {
			r.Header.Add(fmt.Sprintf("X-%d", i%7), "x")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%d fields: %d, want %d", n, w.Code, want)
		}
	}
}

func TestAMuxAnswersItsRefusalsAsJSON(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("id")) })
	mux.HandleFunc("PUT /a/{id}", func(http.ResponseWriter, *http.Request) {})
	h := http.StripPrefix("/prefix", JSONMux(quiet(), mux))
	for _, test := range []struct {
		method, path string
		status       int
		allow, body  string
	}{
		{"GET", "/a/1", 200, "", "1"}, {"HEAD", "/a/1", 200, "", "1"}, {"GET", "/a/x%2Fy", 200, "", "x/y"}, {"GET", "/a/%2e%2e", 200, "", ".."},
		{"GET", "/b", 404, "", `"message"`}, {"GET", "", 404, "", `"message"`}, {"GET", "/", 404, "", `"message"`},
		{"GET", "/a//1", 404, "", `"message"`}, {"GET", "/./a/1", 404, "", `"message"`}, {"GET", "/b/../a/1", 404, "", `"message"`},
		{"GET", "/a/1/", 404, "", `"message"`}, {"POST", "/a/1", 405, "GET, HEAD, PUT", "POST is not possible here"},
		{"post", "/a/1", 405, "GET, HEAD, PUT", `"message"`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, "http://example.com/prefix"+test.path, nil))
		if w.Code != test.status || w.Header().Get("Allow") != test.allow || !strings.Contains(w.Body.String(), test.body) || w.Header().Get("Location") != "" {
			t.Errorf("%s %s: %d, Allow %q, %s", test.method, test.path, w.Code, w.Header().Get("Allow"), w.Body)
		}
		if w.Code >= 400 && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: content type %s", test.method, test.path, w.Header().Get("Content-Type"))
		}
	}
}

// TestACompressorDoesNotWaitForTheClient: it takes more room than most answers.
func TestACompressorDoesNotWaitForTheClient(t *testing.T) {
	handled := false
	w := writeFunc{httptest.NewRecorder(), func() {
		if !handled {
			t.Error("the client is sent something while the handler runs")
		}
	}}
	h := Gzip()(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer func() { handled = true }()
		for range 100 {
			_, _ = io.CopyN(w, rand.Reader, 500) // which cannot be made shorter, and so leaves the compressor early
		}
	}))
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Accept-Encoding", "gzip")
	h.ServeHTTP(w, r)
	in, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(in); err != nil || len(text) != 50_000 {
		t.Errorf("%d bytes arrive, %v", len(text), err)
	}
}

type writeFunc struct {
	*httptest.ResponseRecorder
	wrote func()
}

func (w writeFunc) Write(p []byte) (int, error) {
	w.wrote()
	return w.ResponseRecorder.Write(p)
}

// TestCompressorsAreBounded: who finds all of them at work is answered all the same.
func TestCompressorsAreBounded(t *testing.T) {
	for range cap(compressors) {
		compressors <- struct{}{}
	}
	defer func() {
		for range cap(compressors) {
			<-compressors
		}
	}()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Accept-Encoding", "gzip")
	Gzip()(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") })).ServeHTTP(w, r)
	if w.Body.String() != "text" || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("%q in %v", w.Body, w.Header())
	}
}
