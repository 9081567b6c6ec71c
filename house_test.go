package holdfast_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The tests named TestHouse are gates: they hold for the repository as a whole, and
// make check runs them. A gate looks at a tree of files and returns its faults.
type gate func(tree fs.FS) (faults []string, err error)

const module = "github.com/holdfast-go/holdfast"

var policyPackages = []string{"timeout", "bulkhead", "ratelimit", "breaker", "retry", "fallback"}

func TestHouse(t *testing.T) {
	gates := []struct {
		name string
		gate gate
	}{
		{"rooms", roomFaults},
		{"exported names", exportedFaults},
		{"snippets", snippetFaults},
		{"links", linkFaults},
		{"skeleton of the policies' pages", skeletonFaults},
		{"paths of a machine", pathFaults},
		{"rows of behaviour", rowFaults},
	}
	for _, tt := range gates {
		t.Run(tt.name, func(t *testing.T) {
			faults, err := tt.gate(os.DirFS("."))
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
}

// A gate that cannot fail guards nothing: each is shown what it must find.
func TestHouseGatesCanFail(t *testing.T) {
	const fence = "```"
	example := file("package x_test\n\nfunc Example() {\n\ta()\n\n\tb()\n}\n")
	tests := []struct {
		name string
		gate gate
		tree fstest.MapFS
		want string // "": no fault
	}{
		{"a room is missing", roomFaults, fstest.MapFS{"retry/doc.go": file("")}, "retry: has no options.go"},
		{"undocumented func", exportedFaults, source("func F() {}"), "x.go:3: F has no comment"},
		{"other comment", exportedFaults, source("// Does it.\nfunc F() {}"), "x.go:4: the comment of F does not begin with F"},
		{"longer name", exportedFaults, source("// For it.\nfunc Fo() {}"), "does not begin with Fo"},
		{"documented func", exportedFaults, source("// F does.\nfunc F() {}"), ""},
		{"undocumented method", exportedFaults, source("// T is.\ntype T int\nfunc (*T) M() {}"), "T.M has no comment"},
		{"of a generic type", exportedFaults, source("// T is.\ntype T[A, B any] int\nfunc (*T[A, B]) M() {}"), "T.M has no comment"},
		{"of an unexported type", exportedFaults, source("type t int\nfunc (t) M() {}"), ""},
		{"undocumented type", exportedFaults, source("type T int"), "T has no comment"},
		{"article", exportedFaults, source("// A T is.\ntype T int"), ""},
		{"undocumented const", exportedFaults, source("const C = 1"), "C has no comment"},
		{"group", exportedFaults, source("// The numbers.\nconst (\n\tC = 1\n)"), ""},
		{"undocumented group", exportedFaults, source("var (\n\tV = 1\n)"), "V has no comment"},
		{"no package comment", exportedFaults, fstest.MapFS{"x.go": file("package x")}, "package x has no comment"},
		{"invented snippet", snippetFaults, page(fence+"go\na()\nc()\n"+fence, example), "README.md:1: no test holds this code"},
		{"snippet with a gap", snippetFaults, page(fence+"go\nExample() {\nb()\n"+fence, example), "no test holds this code"},
		{"snippet of half a line", snippetFaults, page(fence+"go\na()\nb(\n"+fence, example), "no test holds this code"},
		{"snippet as tested", snippetFaults, page(fence+"go\n\ta()\nb()\n"+fence, example), ""},
		{"snippet that never ends", snippetFaults, page(fence+"go\na()\n", example), "README.md:1: the block never ends"},
		{"no pages", snippetFaults, fstest.MapFS{}, "no page found"},
		{"lost file", linkFaults, page("[a](docs/a.md)", nil), "README.md:1: docs/a.md: no such file"},
		{"outside", linkFaults, page("[a](../a.md)", nil), "../a.md: no such file"},
		{"lost heading", linkFaults, page("# A b\n[a](#a-c)", nil), "README.md:2: #a-c: no such heading"},
		{"heading in code", linkFaults, page(fence+"\n# A\n"+fence+"\n[a](#a)", nil), "#a: no such heading"},
		{"reference", linkFaults, page("[a][b]\n\n[b]: b.md", nil), "README.md:3: b.md: no such file"},
		{"heading", linkFaults, page("# A `B`, c\n# A b c\n[a](#a-b-c) [a](README.md#a-b-c-1) [a](https://a.b/c) `[a](b)`", nil), ""},
		{"sections", skeletonFaults, fstest.MapFS{"docs/retry.md": file("# Retry\n## Errors\n")}, "docs/retry.md: its headings"},
		{"home", pathFaults, page("see /"+"home/me/x", nil), "README.md:1: holds the path"},
		{"temporary", pathFaults, page("`/"+"tmp/x`", nil), "README.md:1: holds the path"},
		{"row without a test", rowFaults, rows("1. A\n2. B\n", "BEHAVIOUR 1: a"), "docs/behaviour.md: no test names row 2"},
		{"rows out of order", rowFaults, rows("2. A\n", "BEHAVIOUR 2"), "row 2 stands in place 1"},
		{"no rows", rowFaults, rows("", ""), "has no rows"},
		{"rows named together", rowFaults, rows("1. A\n   b\n2. B\n3. C\n", "BEHAVIOUR 1, 2, and BEHAVIOUR 2 and 3"), ""},
		{"address", pathFaults, page("https://example.org/"+"home/x", nil), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			faults, err := tt.gate(tt.tree)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(faults, "\n"); !strings.Contains(all, tt.want) || tt.want == "" && all != "" {
				t.Errorf("faults %q, want %q", all, tt.want)
			}
		})
	}
}

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

func source(code string) fstest.MapFS {
	return fstest.MapFS{"x.go": file("// Package x is.\npackage x\n" + code)}
}

func page(text string, test *fstest.MapFile) fstest.MapFS {
	tree := fstest.MapFS{"README.md": file(text)}
	if test != nil {
		tree["x_test.go"] = test
	}
	return tree
}

func rows(page, cites string) fstest.MapFS {
	return fstest.MapFS{"docs/behaviour.md": file(page), "x_test.go": file("// " + cites)}
}

// roomFaults tells which policy packages lack a file that all of them have, so that
// who knows one finds his way in every other.
func roomFaults(tree fs.FS) (faults []string, err error) {
	for _, pkg := range policyPackages {
		rooms := []string{"doc.go", pkg + ".go", "options.go", "errors.go", pkg + "_test.go", "example_test.go", "bench_test.go"}
		for _, room := range rooms {
			if _, err := fs.Stat(tree, path.Join(pkg, room)); err != nil {
				faults = append(faults, fmt.Sprintf("%s: has no %s", pkg, room))
			}
		}
	}
	return faults, nil
}

// mayImport says which layer may import which, tests aside. Whatever is not listed
// imports the standard library only. No policy imports another: what one needs to know
// of another, it asks through package policy.
var mayImport = map[string][]string{
	"root":         {"policies", "policy", "internal"},
	"policies":     {"policy", "internal", "others' modules"},
	"policytest":   {"policy"},
	"holdfasthttp": {"root", "policies", "policy", "internal"},
}

type importer struct {
	ImportPath string
	Imports    []string
}

func TestHouseImports(t *testing.T) {
	for decoder := json.NewDecoder(strings.NewReader(goCommand(t, "list", "-json=ImportPath,Imports", "./..."))); decoder.More(); {
		var pkg importer
		if err := decoder.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		for _, fault := range importFaults(pkg) {
			t.Error(fault)
		}
	}
}

func TestHouseImportsCanFail(t *testing.T) {
	tests := []struct {
		from, to string
		allowed  bool
	}{
		{module, module + "/retry", true},
		{module, module + "/policytest", false},
		{module + "/retry", module + "/policy", true},
		{module + "/retry", module + "/internal/fault", true},
		{module + "/retry", "github.com/cenkalti/backoff/v4", true},
		{module + "/retry", module + "/breaker", false},
		{module + "/retry", module, false},
		{module + "/policy", module + "/internal/fault", false},
		{module + "/policy", "log/slog", true},
		{module + "/policytest", module + "/retry", false},
		{module + "/holdfasthttp", module, true},
		{module + "/holdfasthttp", module + "/breaker", true},
		{module + "/holdfasthttp", "golang.org/x/net/http2", false},
		{module + "/internal/window", module + "/policy", false},
		{module + "/internal/window", "golang.org/x/sync/semaphore", false},
		{module + "/unheard", "context", false},
	}
	for _, tt := range tests {
		faults := importFaults(importer{ImportPath: tt.from, Imports: []string{tt.to}})
		if allowed := len(faults) == 0; allowed != tt.allowed {
			t.Errorf("%s imports %s: allowed %t, want %t", tt.from, tt.to, allowed, tt.allowed)
		}
	}
}

func importFaults(pkg importer) (faults []string) {
	from := layer(pkg.ImportPath)
	if from == "unknown" {
		return []string{pkg.ImportPath + ": in no layer that this test knows"}
	}
	for _, imported := range pkg.Imports {
		if to := layer(imported); to != "standard library" && !slices.Contains(mayImport[from], to) {
			faults = append(faults, fmt.Sprintf("%s imports %s: %s may not import %s", pkg.ImportPath, imported, from, to))
		}
	}
	return faults
}

func layer(importPath string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(importPath, module+"/"), "/")
	switch {
	case importPath == module:
		return "root"
	case !strings.HasPrefix(importPath, module+"/") && !strings.Contains(first, "."):
		return "standard library"
	case !strings.HasPrefix(importPath, module+"/"):
		return "others' modules"
	case slices.Contains(policyPackages, first):
		return "policies"
	case first == "policy", first == "policytest", first == "holdfasthttp", first == "internal":
		return first
	default:
		return "unknown"
	}
}

// replace is a line of a go.mod, as the go command prints it.
type replace struct{ Old, New struct{ Path string } }

// A user of the library takes on these modules, and no others.
func TestHouseDependencies(t *testing.T) {
	want := []string{"github.com/cenkalti/backoff/v4", "go.uber.org/goleak", "golang.org/x/sync"}
	var mod struct {
		Require []struct{ Path string }
		Replace []replace
	}
	decode(t, goCommand(t, "mod", "edit", "-json"), &mod)
	var got []string
	for _, r := range mod.Require {
		got = append(got, r.Path)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("go.mod requires %q, want %q", got, want)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces %v: users would not get that", mod.Replace)
	}
}

// Every module but tools takes part in the workspace, and finds the root without it
// too.
func TestHouseModules(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	decode(t, goCommand(t, "work", "edit", "-json", "go.work"), &work)
	var used []string
	for _, u := range work.Use {
		used = append(used, path.Clean(u.DiskPath))
	}
	files, err := filesOf(os.DirFS("."), "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		dir := path.Dir(name)
		if joined := slices.Contains(used, dir); joined == (dir == "tools") {
			t.Errorf("go.work uses %s: %t, want %t", dir, joined, !joined)
		}
		if dir == "." || dir == "tools" {
			continue
		}
		var mod struct{ Replace []replace }
		decode(t, goCommand(t, "mod", "edit", "-json", name), &mod)
		if !slices.ContainsFunc(mod.Replace, func(r replace) bool {
			return r.Old.Path == module && path.Join(dir, r.New.Path) == "."
		}) {
			t.Errorf("%s does not replace %s by this tree's", name, module)
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// goCommand runs the go command on the root module alone, and returns its output.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// filesOf lists the tree's files whose names match one of patterns. Hidden
// directories are left out, .ci excepted, and so is bin.
func filesOf(tree fs.FS, patterns ...string) (names []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() != "." && d.Name() != ".ci" && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.Type().IsRegular() && slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, d.Name())
			return ok
		}):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
