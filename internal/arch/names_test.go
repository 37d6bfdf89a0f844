package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unused are exported names that nothing but tests mentions, and why they stay.
var unused = map[string]string{
	"internal/settings.Reference":  "make golden writes docs with it",
	"internal/subscribe.Codes":     "make golden writes docs with it",
	"internal/subscribe.Reference": "make golden writes docs with it",
}

// calledByLibraries are methods that implement interfaces of others.
var calledByLibraries = []string{
	"Debugf", "Noticef", "Tracef", "Warnf", // NATS
	"Resolve", "UnmarshalJSON", // huma, encoding/json
	"SessionLock", "SessionUnlock", // goose
}

// systemCalls are where raw system calls are made: whole packages, or single files.
var systemCalls = []string{
	"internal/fanout", "internal/wire",
	"internal/httpkit/gone.go",                              // finds the socket of a request
	"internal/poll/guard.go", "internal/registry/barred.go", // look at an address before it is dialled
	"internal/server/files_unix.go", "internal/server/stall_linux.go", "internal/server/stall_other.go", // limits of the process and its sockets
	"internal/store/dirlock_unix.go", "internal/store/disk_unix.go", // files
}

// source is a Go file that is no test.
type source struct {
	dir, name string
	file      *ast.File
}

// sources parses all of the main module but tests, for every system.
func sources(t *testing.T) (all []source) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(root, path, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		all = append(all, source{filepath.ToSlash(filepath.Dir(rel)), filepath.Base(rel), file})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryExportedNameIsUsed outside of the nouns and the client, which are for others. A name that occurs anywhere but in its own
// declaration counts as used, so that this needs no types.
func TestEveryExportedNameIsUsed(t *testing.T) {
	mentioned := map[string]int{}
	declared := map[string][]string{} // by name: where
	declare := func(dir string, name *ast.Ident) {
		if name.IsExported() {
			declared[name.Name] = append(declared[name.Name], dir)
		}
	}
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				mentioned[id.Name]++
			}
			return true
		})
		if !strings.HasPrefix(s.dir, "internal/") || s.dir == "internal/pgtest" {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				declare(s.dir, d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declare(s.dir, spec.Name)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							declare(s.dir, name)
						}
					}
				}
			}
		}
	}
	found := map[string]bool{}
	for name, dirs := range declared {
		for _, dir := range dirs {
			if mentioned[name] > len(dirs) || slices.Contains(calledByLibraries, name) {
				continue
			}
			full := dir + "." + name
			found[full] = true
			if _, ok := unused[full]; !ok {
				t.Errorf("%s is exported, and nothing but tests uses it", full)
			}
		}
	}
	for name := range unused {
		if !found[name] {
			t.Errorf("%s is used, or gone: take it off the list", name)
		}
	}
}

// TestRawSystemCallsHaveFewHomes: what they get wrong, no other test sees.
func TestRawSystemCallsHaveFewHomes(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains(systemCalls, s.dir) || slices.Contains(systemCalls, s.dir+"/"+s.name) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := sel.X.(*ast.Ident)
			isRaw := sel.Sel.Name == "SyscallConn" || of != nil && (of.Name == "unix" || of.Name == "syscall" && strings.Contains(sel.Sel.Name, "Raw"))
			if isRaw {
				t.Errorf("%s/%s uses %s; raw system calls are made in %s only", s.dir, s.name, sel.Sel.Name, strings.Join(systemCalls, ", "))
			}
			return true
		})
	}
}
