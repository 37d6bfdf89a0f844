package openapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5/static"
	"github.com/swaggest/swgui/v5emb"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// Browse serves a description at /<name>.json and a page to read and try it at /<page>/index.html. Everything the
// page needs comes from this binary; addresses in it are relative, so it works under every version prefix.
func Browse(mux Mux, description *huma.OpenAPI, name, page string) error {
	text, err := json.Marshal(description)
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /"+name+".json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // fails only when the client is gone
	})
	mux.HandleFunc("GET /"+page, func(w http.ResponseWriter, _ *http.Request) {
		// Relative, since only the client knows the whole path.
		w.Header().Set("Location", page+"/index.html")
		w.WriteHeader(http.StatusMovedPermanently)
	})
	serve, err := viewer(description.Info.Title, "../"+name+".json", "/"+page+"/")
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /"+page+"/{file...}", serve)
	return nil
}

//go:embed page
var pageFiles embed.FS

var index = template.Must(template.ParseFS(pageFiles, "page/index.html"))

// viewer serves the page at base and the files it loads.
func viewer(title, description, base string) (http.HandlerFunc, error) {
	var html bytes.Buffer
	if err := index.Execute(&html, struct{ Title, Description string }{title, description}); err != nil {
		return nil, err
	}
	start, err := pageFiles.ReadFile("page/start.js")
	if err != nil {
		return nil, err
	}
	assets := v5emb.NewHandlerWithConfig(swgui.Config{InternalBasePath: base})
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", pagePolicy)
		switch file := strings.TrimPrefix(r.URL.Path, base); {
		case file == "" || file == "index.html":
			serveOwn(w, "text/html; charset=utf-8", html.Bytes())
		case file == "start.js":
			serveOwn(w, "text/javascript; charset=utf-8", start)
		case !embedded(file):
			httpkit.WriteJSON(w, http.StatusNotFound, httpkit.Body(freshet.Errorf(freshet.NotFound, "There is nothing at this path")))
		default:
			assets.ServeHTTP(w, r)
		}
	}, nil
}

func serveOwn(w http.ResponseWriter, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(content) // fails only when the client is gone
}

// embedded reports whether the viewer has the file, as it is or compressed.
func embedded(file string) bool {
	for _, suffix := range []string{"", ".gz"} {
		if info, err := fs.Stat(static.FS, file+suffix); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// pagePolicy keeps the page from loading anything from elsewhere, and from running scripts that are not files of ours: people enter
// tokens and keys there. Styles and images of Swagger UI are inline.
const pagePolicy = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
