// Package console is the web console: pages for people who would rather see their data flow than call an API.
//
// It only serves files, which are built from web/ by the module in build/ and committed in dist/, so that neither running
// nor building the program needs anything but Go. Everything a person does there goes through the same public APIs as
// everybody else's requests; the console has no rights and no API of its own. A handler is fixed after New and safe for
// concurrent use.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

//go:embed dist
var built embed.FS

// Path is where the gateway shows the console.
const Path = "/console"

// Options is what the pages must know about the server.
type Options struct {
	Log            *slog.Logger
	SubscriberURL  string // as browsers reach it; empty: on the same host as the console
	SubscriberPort int    // for that; 0 if this process serves no subscribers
	Secure         bool   // whether that port speaks TLS
	OpenSignUp     bool
	Version        string
}

// file is one built file, ready to be sent.
type file struct {
	contentType  string
	body, zipped []byte // zipped is nil where it would save nothing
	etag         string
	forever      bool // the name changes with the content
}

type site struct {
	Options
	files map[string]*file // by path below the console's own, "/assets/app-XYZ.js"
}

// New returns the handler for everything below Path, with that prefix taken off.
func New(o Options) (http.Handler, error) {
	dist, err := fs.Sub(built, "dist")
	if err != nil {
		return nil, err
	}
	s := &site{Options: o, files: map[string]*file{}}
	err = fs.WalkDir(dist, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(dist, name)
		if err == nil {
			s.files["/"+name], err = prepare(name, body)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return httpkit.Serve(o.Log, s.serve), nil
}

// index is the page that every path leads to which is not a file: the script on it knows what to show there.
const index = "/index.html"

func prepare(name string, body []byte) (*file, error) {
	sum := sha256.Sum256(body)
	f := &file{
		contentType: mime.TypeByExtension(path.Ext(name)),
		body:        body,
		etag:        `"` + hex.EncodeToString(sum[:12]) + `"`,
		forever:     strings.HasPrefix(name, "assets/"),
	}
	if path.Ext(name) == ".woff2" { // which the system may not know, and which is compressed already
		f.contentType = "font/woff2"
		return f, nil
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if zipped.Len() < len(body) {
		f.zipped = zipped.Bytes()
	}
	return f, nil
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return freshet.Errorf(freshet.MethodNotAllowed, "The console only answers GET and HEAD")
	}
	subscriber := s.subscriberURL(r)
	guard(w.Header(), subscriber)
	switch at := r.URL.Path; {
	case at == "":
		w.Header().Set("Location", strings.TrimPrefix(Path, "/")+"/") // relative: a proxy may have put us below a path of its own
		w.WriteHeader(http.StatusPermanentRedirect)
	case at == "/config.json":
		w.Header().Set("Cache-Control", "no-store")
		httpkit.WriteJSON(w, http.StatusOK, configuration{SubscriberURL: subscriber, OpenSignUp: s.OpenSignUp, Version: s.Version})
	case s.files[at] != nil:
		s.files[at].send(w, r)
	case strings.HasPrefix(at, "/assets/"):
		return freshet.Errorf(freshet.NotFound, "There is no such file; reload the page, the server may be newer than it")
	default:
		s.files[index].send(w, r)
	}
	return nil
}

// configuration is what the pages ask for first. It holds nothing that a stranger may not know.
type configuration struct {
	SubscriberURL string `json:"subscriber_url"` // empty if unknown
	OpenSignUp    bool   `json:"open_sign_up"`
	Version       string `json:"version"`
}

func (f *file) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if f.zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // fails only when the client is gone
}

// acceptsGzip is deliberately simple: who forbids gzip with q=0 gets the plain file, like everybody who does not ask.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, q, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.TrimRight(strings.ReplaceAll(q, " ", ""), "0.") != "q="
		}
	}
	return false
}
