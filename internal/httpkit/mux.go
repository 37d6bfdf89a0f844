package httpkit

import (
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/freshet-io/freshet"
)

// JSONMux serves mux, but answers its "not found" and "method not allowed" as JSON like every other error. A path
// that needs cleaning (a//b, a/../b) leads nowhere: the mux would redirect it, to where it thinks that it stands,
// and it does not know the prefix it is mounted at. For the same reason its patterns must not rely on its redirect
// from /a to /a/.
func JSONMux(log *slog.Logger, mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClean(r.URL.EscapedPath()) {
			WriteError(w, r, log, errNothingHere)
			return
		}
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		recorder := &headerRecorder{header: http.Header{}}
		mux.ServeHTTP(recorder, r)
		if allow := recorder.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			WriteError(w, r, log, freshet.Errorf(freshet.MethodNotAllowed, "%s is not possible here; allowed: %s", safeMethod(r), allow))
			return
		}
		WriteError(w, r, log, errNothingHere)
	})
}

var errNothingHere = freshet.Errorf(freshet.NotFound, "There is nothing at this path")

func isClean(escaped string) bool {
	return escaped == "/" || (strings.HasPrefix(escaped, "/") && path.Clean(escaped) == strings.TrimSuffix(escaped, "/"))
}

// headerRecorder discards the text of the response of a ServeMux and keeps its headers.
type headerRecorder struct{ header http.Header }

func (f *headerRecorder) Header() http.Header         { return f.header }
func (f *headerRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (f *headerRecorder) WriteHeader(int)             {}

// safeMethod keeps an invented method from filling the answer.
func safeMethod(r *http.Request) string {
	if len(r.Method) > 16 {
		return "This method"
	}
	return strings.ToUpper(r.Method)
}
