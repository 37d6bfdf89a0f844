package httpkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/rs/cors"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/wire"
)

// Middleware wraps a handler.
type Middleware func(http.Handler) http.Handler

// Chain wraps h in the middlewares; the first one sees a request first.
func Chain(h http.Handler, wraps ...Middleware) http.Handler {
	for i := len(wraps) - 1; i >= 0; i-- {
		h = wraps[i](h)
	}
	return h
}

// Recover turns a panic into a logged 500, so that one bad request cannot end the process.
func Recover(log *slog.Logger) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if v := recover(); v != nil {
					AnswerPanic(w, r, log, v)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// AnswerPanic answers a request whose handler panicked.
func AnswerPanic(w http.ResponseWriter, r *http.Request, log *slog.Logger, v any) {
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v) // net/http's own way to drop a connection
	}
	log.Error("handler panicked", "method", r.Method, "path", SafePath(r.URL.Path), "panic", v, "stack", string(debug.Stack()))
	// Not WriteError: it is logged already. What was written before the panic stays written.
	SetErrorHeaders(w.Header(), nil)
	WriteJSON(w, http.StatusInternalServerError, Body(nil))
}

// finishTimeout bounds what nobody may be waiting for any more.
const finishTimeout = time.Minute

// Finish lets a handler finish what it was asked though its client closes its end of the connection: it may only have nothing more
// to say, and wait for the answer. It is for handlers that take a moment.
func Finish(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), finishTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// AccessLog logs every answered request at debug level, and nothing of it that may be a key.
func AccessLog(log *slog.Logger) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !log.Enabled(r.Context(), slog.LevelDebug) {
				next.ServeHTTP(w, r)
				return
			}
			start := time.Now()
			sw := &statusWriter{ResponseWriter: w}
			next.ServeHTTP(sw, r)
			log.Debug("request", "method", r.Method, "path", SafePath(r.URL.Path), "status", max(sw.status, http.StatusOK),
				"duration", time.Since(start), "remote", r.RemoteAddr)
		})
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// compressors are those at work in the process. Each takes more than a megabyte, and anybody may ask for an answer that needs one.
var compressors = make(chan struct{}, 32)

// Gzip compresses every answer with a body, however small, for clients that accept it. While too many others are being compressed, it
// leaves an answer as it is.
func Gzip() Middleware {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1), gzhttp.EnableZstd(false), gzhttp.ContentTypeFilter(gzhttp.CompressAllContentTypeFilter))
	if err != nil {
		panic(err) // the options are constant
	}
	return func(next http.Handler) http.Handler {
		compressed := wrap(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case compressors <- struct{}{}:
			default:
				w.Header().Add("Vary", "Accept-Encoding") // for caches, as if it were compressed
				next.ServeHTTP(w, r)
				return
			}
			k := &keptWriter{ResponseWriter: w}
			func() {
				defer func() { <-compressors }()
				compressed.ServeHTTP(k, r)
			}()
			k.send()
		})
	}
}

// maxKept is how much of a compressed answer is kept until it is complete.
const maxKept = 64 << 10

// keptWriter keeps an answer until it is complete, if it is not too long: a compressor takes a megabyte, and must not wait for
// clients.
type keptWriter struct {
	http.ResponseWriter
	kept   []byte
	passes bool // it was too long, or is wanted as it comes
}

// Write implements http.ResponseWriter.
func (k *keptWriter) Write(p []byte) (int, error) {
	if !k.passes && len(k.kept)+len(p) <= maxKept {
		k.kept = append(k.kept, p...)
		return len(p), nil
	}
	k.send()
	return k.ResponseWriter.Write(p)
}

// FlushError implements what http.ResponseController asks for.
func (k *keptWriter) FlushError() error {
	k.send()
	return http.NewResponseController(k.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (k *keptWriter) Flush() { _ = k.FlushError() }

// Unwrap lets http.ResponseController reach the connection.
func (k *keptWriter) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// send writes what was kept. If that fails, so does what follows.
func (k *keptWriter) send() {
	k.passes = true
	if len(k.kept) > 0 {
		_, _ = k.ResponseWriter.Write(k.kept)
		k.kept = nil
	}
}

// CORS opens an API to pages of every origin. Credentials stay off: tokens travel in headers, never in cookies,
// so another origin's page has nothing to ride on.
func CORS() Middleware {
	c := cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders: []string{"*"},
		ExposedHeaders: []string{"ETag", "Location", "Retry-After", "X-RateLimit-Minute", "X-RateLimit-Limit-Minute", "X-RateLimit-Remaining-Minute"},
		MaxAge:         600,
	})
	return c.Handler
}

// StrictTransportHeader tells browsers to come by TLS only, for a year (RFC 6797).
var StrictTransportHeader = http.Header{"Strict-Transport-Security": {"max-age=31536000"}}

// StrictTransport puts StrictTransportHeader on every response.
func StrictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), StrictTransportHeader)
		next.ServeHTTP(w, r)
	})
}

// MaxHeaderFields bounds the number of header fields; net/http bounds only their size.
const MaxHeaderFields = wire.MaxFields

// LimitHeaders refuses requests with absurdly many header fields.
func LimitHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for _, values := range r.Header {
			n += len(values)
		}
		if n > MaxHeaderFields {
			w.Header().Set("Connection", "close")
			WriteJSON(w, http.StatusRequestHeaderFieldsTooLarge, ErrorBody{Message: fmt.Sprintf("More than %d header fields", MaxHeaderFields)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// BodyError classifies an error met while reading a request body.
func BodyError(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return freshet.Errorf(freshet.TooLarge, "The body is larger than %d bytes", tooLarge.Limit)
	}
	return freshet.Wrap(freshet.Invalid, err, "The body could not be read to its end")
}
