package wire

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// handlers write in every way there is.
var handlers = map[string]http.HandlerFunc{
	"nothing":                func(http.ResponseWriter, *http.Request) {},
	"a short body":           func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
	"an empty write":         func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) },
	"the longest sized":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", sizedBody)) },
	"the shortest in chunks": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", sizedBody+1)) },
	"in many pieces": func(w http.ResponseWriter, _ *http.Request) {
		for i := range 500 {
			fmt.Fprint(w, i, " and ")
		}
	},
	"much at once": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("0123456789", 50_000)) },
	"HTML":         func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	"a type": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "a/b")
		fmt.Fprint(w, "<html>")
	},
	"no type at all": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		fmt.Fprint(w, "<html>")
	},
	"encoded": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "x")
		fmt.Fprint(w, "<html>")
	},
	"flushed": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a")
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "b")
	},
	"flushed first": func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "<html>")
	},
	"flushed last": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a")
		_ = http.NewResponseController(w).Flush()
	},
	"a length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		fmt.Fprint(w, "hello")
	},
	"a length, flushed": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "hello")
	},
	"more than its length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		fmt.Fprint(w, "hello")
		if _, err := fmt.Fprint(w, " world"); err != http.ErrContentLength {
			panic(err)
		}
	},
	"less than its length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "50")
		fmt.Fprint(w, "hello")
	},
	"204": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
	"204 with a body": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(204)
		if _, err := fmt.Fprint(w, "hello"); err != http.ErrBodyNotAllowed {
			panic(err)
		}
	},
	"304": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", "x")
		w.Header().Set("Content-Type", "a/b")
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(304)
	},
	"an odd status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) },
	"twice": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		w.WriteHeader(500)
		fmt.Fprint(w, "gone")
	},
	"fields that come too late": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("A", "b")
		w.WriteHeader(200)
		w.Header().Set("A", "c")
		w.Header().Set("B", "c")
	},
	"odd fields": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["x-odd"] = []string{"a", "b"}
		w.Header()["X A"] = []string{"a"}
		w.Header()["X!~"] = []string{"a\r\nb"}
		w.Header()[""] = []string{"a"}
	},
	"a date":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "Sun, 06 Nov 1994 08:49:37 GMT") },
	"no date": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil },
	"the end": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "bye")
	},
	"announced trailers": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "A, b")
		w.Header().Add("Trailer", "Content-Length")
		fmt.Fprint(w, "hello")
		w.Header().Set("A", "1")
		w.Header().Set("B", "2")
	},
	"late trailers": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set(http.TrailerPrefix+"A", "1")
	},
	"hints": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.WriteHeader(103)
		fmt.Fprint(w, "hello")
	},
}

// TestResponsesAreThoseOfNetHTTP: a client cannot tell who wrote them.
func TestResponsesAreThoseOfNetHTTP(t *testing.T) {
	for _, method := range []string{"GET", "HEAD"} {
		for name, h := range handlers {
			t.Run(method+" "+name, func(t *testing.T) {
				s := start(t, func(x *Exchange) Outcome {
					h(x.Response(), x.HTTP())
					return Done
				}, nil)
				reference := httptest.NewUnstartedServer(h)
				reference.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
				reference.Start()
				defer reference.Close()
				theirs := &server{t: t, address: reference.Listener.Addr().String()}
				got, want := responses(s.dial(), method), responses(theirs.dial(), method)
				if got != want {
					t.Errorf("we answer\n%s\nand net/http\n%s", got, want)
				}
			})
		}
	}
}

// responses asks twice on one connection.
func responses(c *caller, method string) string {
	var all strings.Builder
	r := &http.Request{Method: method}
	c.send(method + " / HTTP/1.1\r\nHost: x\r\n\r\n")
	for asked := 1; ; {
		resp, err := http.ReadResponse(c.in, r)
		if err != nil {
			return all.String() // closed, or reset if the second request came too late
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Header.Get("Date") != "Sun, 06 Nov 1994 08:49:37 GMT" && resp.Header.Get("Date") != "" {
			resp.Header.Set("Date", "now")
		}
		fmt.Fprintln(&all, resp.Status, resp.Header, resp.TransferEncoding, resp.ContentLength, resp.Close, string(body), err, resp.Trailer)
		if err != nil {
			return all.String()
		}
		if resp.StatusCode < 200 {
			continue
		}
		if asked++; asked == 2 {
			_, _ = io.WriteString(c, method+" / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") // it may be closed
		}
	}
}

func TestAShortResponseIsMadeOfNothing(t *testing.T) {
	var w ResponseWriter
	write := func() {
		w.Reset(io.Discard, "GET", nil)
		w.Header()["Content-Type"] = jsonType
		_, _ = w.Write(jsonBody)
		if !w.Finish() {
			t.Fatal("not written")
		}
	}
	write()
	if n := testing.AllocsPerRun(100, write); n > 0 {
		t.Errorf("%v pieces of memory", n)
	}
}

var jsonType, jsonBody = []string{"application/json"}, []byte("{}")
