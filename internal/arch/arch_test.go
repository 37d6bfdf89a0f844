package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/freshet-io/freshet"

// layers lists every package, lowest layer first. A package may import the layers below its own and nothing else of
// the project; in particular, packages of one layer do not know each other.
var layers = []struct {
	name     string
	packages []string
}{
	{"nouns", []string{"."}},
	{"codecs", []string{"internal/jsonpatch", "internal/sse", "internal/histogram"}},
	{"system", []string{"internal/wire", "internal/memory", "internal/loglimit", "internal/keyfile"}},
	{"client", []string{"client", "internal/screen", "examples"}},
	{"embedded servers", []string{"internal/grid/natsserver"}},
	{"contracts", []string{"internal/grid"}},
	{"engines", []string{"internal/content", "internal/store", "internal/grid/memory", "internal/grid/jetstream", "internal/fanout", "internal/httpkit", "internal/settings", "internal/trace"}},
	{"descriptions", []string{"internal/openapi"}},
	{"rules", []string{"internal/catalog", "internal/registry", "internal/router", "internal/usage"}},
	{"roles", []string{"internal/gateway", "internal/kong", "internal/manage", "internal/publish", "internal/poll", "internal/subscribe", "console"}},
	{"server", []string{"internal/server"}},
	{"demo", []string{"internal/demo"}},
	{"cli", []string{"internal/cli"}},
	{"cmd", []string{"cmd/freshet", "examples/ticker", "examples/webhook"}},
	{"tests", []string{"internal/arch", "internal/pgtest", "internal/grid/gridtest", "e2e", "e2e/appliers"}},
}

// reserved are things that only the named packages may know.
var reserved = []struct {
	what    string
	imports []string // import paths, or prefixes that end in a slash
	owners  []string
}{
	{"SQL", []string{"database/sql", "database/sql/", "github.com/jackc/", "github.com/ncruces/", "github.com/pressly/"}, []string{"internal/store", "internal/pgtest"}},
	{"NATS", []string{"github.com/nats-io/"}, []string{"internal/grid/jetstream", "internal/grid/natsserver"}},
	{"commands", []string{"github.com/spf13/"}, []string{"internal/cli", "internal/settings"}},
	{"Prometheus", []string{"github.com/prometheus/"}, []string{"internal/server"}},
	{"tokens", []string{"github.com/golang-jwt/", "github.com/alexedwards/"}, []string{"internal/catalog"}},
}

// unwanted names say where code was put, not what it is.
var unwanted = []string{"util", "utils", "common", "helpers", "types", "base", "misc", "shared"}

type pkg struct {
	dir     string
	paths   []string // of files that are not tests
	files   []*ast.File
	imports []string // of files that are not tests
}

func TestEveryPackageHasAPlaceInThePicture(t *testing.T) {
	for _, p := range load(t) {
		if layerOf(p.dir) < 0 {
			t.Errorf("%s is in no layer: give it a place in arch_test.go and in ARCHITECTURE.md", p.dir)
		}
		if slices.Contains(unwanted, path.Base(p.dir)) {
			t.Errorf("%s: the name says nothing; call it by what it does", p.dir)
		}
	}
}

func TestImportsRunDownwards(t *testing.T) {
	for _, p := range load(t) {
		own := layerOf(p.dir)
		for _, imported := range p.imports {
			dir, ours := projectDir(imported)
			if ours && layerOf(dir) >= own {
				t.Errorf("%s (%s) imports %s (%s), which is not below it", p.dir, layers[own].name, dir, layers[layerOf(dir)].name)
			}
		}
	}
}

func TestCodecsNeedOnlyTheStandardLibrary(t *testing.T) {
	// sse compresses, and the standard library's deflate costs a megabyte for each stream.
	allowed := map[string][]string{"internal/sse": {"github.com/klauspost/compress/"}}
	for _, p := range load(t) {
		if layers[layerOf(p.dir)].name != "codecs" {
			continue
		}
		for _, imported := range p.imports {
			if isStandard(imported) || matches(imported, allowed[p.dir]) {
				continue
			}
			t.Errorf("%s imports %s; codecs stand on the standard library alone", p.dir, imported)
		}
	}
}

func TestTheClientNeedsOnlyTheStandardLibraryAndCodecs(t *testing.T) {
	for _, p := range load(t) {
		if p.dir != "client" {
			continue
		}
		for _, imported := range p.imports {
			if _, ours := projectDir(imported); !ours && !isStandard(imported) {
				t.Errorf("client imports %s; what it needs, everybody who uses it needs", imported)
			}
		}
	}
}

func TestEnginesKeepTheirKnowledgeToThemselves(t *testing.T) {
	for _, p := range load(t) {
		for _, r := range reserved {
			for _, imported := range p.imports {
				if matches(imported, r.imports) && !slices.Contains(r.owners, p.dir) {
					t.Errorf("%s imports %s; %s is known to %s only", p.dir, imported, r.what, strings.Join(r.owners, ", "))
				}
			}
		}
	}
}

func TestNounsDoNoIO(t *testing.T) {
	for _, p := range load(t) {
		if p.dir != "." {
			continue
		}
		for _, imported := range p.imports {
			if matches(imported, []string{"os", "os/", "net", "net/http", "net/http/", "io/", "bufio", "syscall"}) {
				t.Errorf("the nouns import %s; they do no I/O", imported)
			}
		}
	}
}

func TestRolesLeaveTheStoreToTheRules(t *testing.T) {
	for _, p := range load(t) {
		if layers[layerOf(p.dir)].name == "roles" && slices.Contains(p.imports, module+"/internal/store") {
			t.Errorf("%s imports the store; what is kept is changed and read through rules", p.dir)
		}
	}
}

// TestNothingRegistersItself holds that a list is written down where it is declared: a variable must not add itself to one, and init
// must not fill one.
func TestNothingRegistersItself(t *testing.T) {
	for _, p := range load(t) {
		files := p.whole(t)
		own := packageVariables(files)
		for _, f := range files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						if v, ok := spec.(*ast.ValueSpec); ok && isUnnamedCall(v) {
							t.Errorf("%s: a variable without a name calls something when the program starts", p.dir)
						}
					}
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						for _, name := range filledIn(d.Body, own) {
							t.Errorf("%s: init fills %s; write down what is in it where it is declared", p.dir, name)
						}
					}
				}
			}
		}
	}
}

// isUnnamedCall reports whether a declaration is var _ = f(…). Conversions, as in var _ I = (*T)(nil), call nothing.
func isUnnamedCall(v *ast.ValueSpec) bool {
	for i, name := range v.Names {
		if name.Name != "_" || i >= len(v.Values) {
			continue
		}
		call, ok := v.Values[i].(*ast.CallExpr)
		if !ok {
			continue
		}
		if _, conversion := call.Fun.(*ast.ParenExpr); !conversion {
			return true
		}
	}
	return false
}

func packageVariables(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					names[name.Name] = true
				}
			}
		}
	}
	return names
}

// filledIn returns which of the package's variables the body assigns to, or to an element of.
func filledIn(body *ast.BlockStmt, own map[string]bool) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		assignment, ok := n.(*ast.AssignStmt)
		if !ok || assignment.Tok == token.DEFINE {
			return true
		}
		for _, to := range assignment.Lhs {
			if element, ok := to.(*ast.IndexExpr); ok {
				to = element.X
			}
			if name, ok := to.(*ast.Ident); ok && own[name.Name] {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range load(t) {
		text := ""
		for _, f := range p.files {
			text += f.Doc.Text()
		}
		if len(strings.Fields(text)) < 8 {
			t.Errorf("%s has no package comment that says what it is", p.dir)
		}
	}
}

func layerOf(dir string) int {
	return slices.IndexFunc(layers, func(l struct {
		name     string
		packages []string
	}) bool {
		return slices.Contains(l.packages, dir)
	})
}

// projectDir returns the folder of an import path of this module.
func projectDir(imported string) (dir string, ours bool) {
	if imported == module {
		return ".", true
	}
	dir, ours = strings.CutPrefix(imported, module+"/")
	return dir, ours
}

func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func matches(imported string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return imported == p || (strings.HasSuffix(p, "/") && strings.HasPrefix(imported, p))
	})
}

// load parses every package of the main module.
func load(t *testing.T) []*pkg {
	t.Helper()
	const root = "../.."
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(root, file, d)
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
		}
		return byDir[dir].parse(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []*pkg
	for _, p := range byDir {
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d packages; the test looks in the wrong place", len(all))
	}
	slices.SortFunc(all, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return all
}

// skipFolder leaves out what is not ours, and modules of their own.
func skipFolder(root, dir string, d fs.DirEntry) error {
	if name := d.Name(); name == "node_modules" || name == "testdata" || (strings.HasPrefix(name, ".") && dir != root) {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != root {
		return filepath.SkipDir
	}
	return nil
}

func (p *pkg) parse(file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	p.files = append(p.files, f)
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	p.paths = append(p.paths, file)
	for _, s := range f.Imports {
		imported, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			return err
		}
		p.imports = append(p.imports, imported)
	}
	return nil
}

// whole parses what is not a test once more, with everything in it.
func (p *pkg) whole(t *testing.T) (all []*ast.File) {
	t.Helper()
	for _, file := range p.paths {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}
