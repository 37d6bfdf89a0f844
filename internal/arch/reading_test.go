package arch

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestTheWalksNameWhatExists reads the code spans of docs/reading.md. A file must be there; a name, such as Type.Method or Func, must be
// declared in one of the files that the same step names, and pkg.Name in a package of that name.
func TestTheWalksNameWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	code := declarations(sources(t))
	names := 0
	for step := range strings.SplitSeq(string(text), "\n##") {
		files := matchesOf(spanOfFile, step)
		for _, file := range files {
			if code.byFile[file] == nil {
				t.Errorf("there is no file %s", file)
			}
		}
		for _, name := range matchesOf(spanOfName, step) {
			names++
			if !code.has(name, files) {
				t.Errorf("%s is declared neither in %s nor in a package of that name", name, strings.Join(files, ", "))
			}
		}
	}
	if names < 50 {
		t.Errorf("found only %d names; the test reads the wrong page", names)
	}
}

var (
	spanOfFile = regexp.MustCompile("`([a-z0-9_/]+\\.go)`")
	spanOfName = regexp.MustCompile("`([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)`")
)

func matchesOf(span *regexp.Regexp, step string) (found []string) {
	for _, m := range span.FindAllStringSubmatch(step, -1) {
		if span == spanOfFile || !strings.HasSuffix(m[1], ".go") {
			found = append(found, m[1])
		}
	}
	return found
}

// declared is what files and packages declare: Name, and Type.Name for methods and fields.
type declared struct {
	byFile    map[string]map[string]bool
	byPackage map[string]map[string]bool // also pkg.Name; several packages may have one name
}

func declarations(all []source) declared {
	d := declared{byFile: map[string]map[string]bool{}, byPackage: map[string]map[string]bool{}}
	for _, s := range all {
		file := map[string]bool{}
		d.byFile[path.Join(s.dir, s.name)] = file
		pkg := s.file.Name.Name
		if d.byPackage[pkg] == nil {
			d.byPackage[pkg] = map[string]bool{}
		}
		for _, decl := range s.file.Decls {
			for _, name := range namesIn(decl) {
				file[name], d.byPackage[pkg][name] = true, true
			}
		}
	}
	return d
}

// has reports whether a name of a step is declared in one of its files, or in the package before its dot. A name alone may also be
// that of a package.
func (d declared) has(name string, files []string) bool {
	for _, file := range files {
		if d.byFile[file][name] {
			return true
		}
	}
	pkg, inside, dotted := strings.Cut(name, ".")
	if !dotted {
		return d.byPackage[name] != nil
	}
	return d.byPackage[pkg][inside]
}

func namesIn(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			return []string{decl.Name.Name}
		}
		return []string{receiver(decl.Recv.List[0].Type) + "." + decl.Name.Name}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names = append(names, id.Name)
				}
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
				for _, member := range membersOf(spec.Type) {
					names = append(names, spec.Name.Name+"."+member)
				}
			}
		}
	}
	return names
}

// receiver is the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// membersOf are the fields of a struct, or the methods of an interface.
func membersOf(of ast.Expr) (names []string) {
	var list *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, id := range field.Names {
			names = append(names, id.Name)
		}
	}
	return names
}
