package openapi

import (
	"encoding/json"
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
	mux.HandleFunc("GET /"+page+"/{file...}", viewer(description.Info.Title, "../"+name+".json", "/"+page+"/"))
	return nil
}

// viewer serves the page at base and the files it loads.
func viewer(title, description, base string) http.HandlerFunc {
	ui := v5emb.NewHandlerWithConfig(swgui.Config{
		Title:            title,
		SwaggerJSON:      description,
		BasePath:         ".",
		InternalBasePath: base,
		SettingsUI: map[string]string{
			// The library takes index.html for a folder and looks for the description one level too low.
			"url":                      "new URL(cfg.swaggerJsonUrl, window.location.href).href",
			"docExpansion":             `"list"`,
			"tryItOutEnabled":          "true",
			"persistAuthorization":     "true",
			"defaultModelsExpandDepth": "1",
		},
	})
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", pagePolicy)
		switch file := strings.TrimPrefix(r.URL.Path, base); {
		case file == "" || file == "index.html":
			h.Set("Cache-Control", "no-cache")
			at := *r.URL
			at.Path, at.RawPath = base, ""
			r = r.Clone(r.Context())
			r.URL = &at
		case !embedded(file):
			httpkit.WriteJSON(w, http.StatusNotFound, httpkit.Body(freshet.Errorf(freshet.NotFound, "There is nothing at this path")))
			return
		}
		ui.ServeHTTP(w, r)
	}
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

// pagePolicy keeps the page from loading anything from elsewhere. Its own start script is inline, and so are the
// styles and images of Swagger UI.
const pagePolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
