package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// files are what is served, by path in dist.
type files map[string][]byte

// bundle builds everything in memory. The same sources always give the same bytes.
func bundle(web string) (files, error) {
	root, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "node_modules", "preact")); err != nil {
		return nil, fmt.Errorf("the npm packages are missing; run npm ci in %s", web)
	}
	built := api.Build(api.BuildOptions{
		AbsWorkingDir:     root,
		EntryPoints:       []string{"src/app.tsx", "src/theme.ts", "src/style.css"},
		Outdir:            filepath.Join(root, "out"),
		EntryNames:        "assets/[name]-[hash]",
		AssetNames:        "assets/[name]-[hash]",
		Bundle:            true,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		Format:            api.FormatESModule,
		Target:            api.ES2022,
		Charset:           api.CharsetUTF8,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		Loader:            map[string]api.Loader{".woff2": api.LoaderFile},
		LegalComments:     api.LegalCommentsNone, // the licences are in a file of their own
		Metafile:          true,
		LogLevel:          api.LogLevelSilent,
	})
	if len(built.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(built.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	out := files{}
	for _, f := range built.OutputFiles {
		name, err := filepath.Rel(filepath.Join(root, "out"), f.Path)
		if err != nil {
			return nil, err
		}
		out[filepath.ToSlash(name)] = f.Contents
	}
	if out["licenses.txt"], err = licenses(root, built.Metafile); err != nil {
		return nil, err
	}
	return out, page(root, out)
}

// page fills the names of the built files into index.html.
func page(root string, out files) error {
	text, err := os.ReadFile(filepath.Join(root, "src", "index.html"))
	if err != nil {
		return err
	}
	for name := range out {
		base := filepath.Base(name)
		stem, _, hashed := cutLast(strings.TrimSuffix(base, filepath.Ext(base)), "-")
		if hashed {
			text = bytes.ReplaceAll(text, []byte("{"+stem+filepath.Ext(base)+"}"), []byte("/console/"+name))
		}
	}
	if i := bytes.Index(text, []byte(`="{`)); i >= 0 {
		return fmt.Errorf("index.html names a file that was not built: %.40s", text[i:])
	}
	out["index.html"] = text
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// licenses collects the licence of every package that became part of the output.
func licenses(root, metafile string) ([]byte, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	var packages []string
	for input := range meta.Inputs {
		parts := strings.Split(input, "/")
		if parts[0] != "node_modules" {
			continue
		}
		end := 2
		if strings.HasPrefix(parts[1], "@") {
			end = 3
		}
		packages = append(packages, strings.Join(parts[:end], "/"))
	}
	slices.Sort(packages)
	var out bytes.Buffer
	out.WriteString("The console contains these packages.\n")
	for _, p := range slices.Compact(packages) {
		text, err := os.ReadFile(filepath.Join(root, p, "LICENSE"))
		if err != nil {
			return nil, fmt.Errorf("what is the licence of %s? %w", p, err)
		}
		fmt.Fprintf(&out, "\n── %s\n\n%s\n", strings.TrimPrefix(p, "node_modules/"), bytes.TrimSpace(text))
	}
	return out.Bytes(), nil
}

// write makes dist exactly what was built.
func write(dist string, built files) error {
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	for name, body := range built {
		at := filepath.Join(dist, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read returns what is in dist.
func read(dist string) (files, error) {
	found := files{}
	err := filepath.WalkDir(dist, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, at)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.ReadFile(at)
		return err
	})
	return found, err
}
