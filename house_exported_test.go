package holdfast_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// exportedFaults tells which packages and exported names lack a comment, or have one
// that does not begin with the name. Names of one const or var group may share the
// group's comment; fields and interface methods are their type's to explain.
func exportedFaults(tree fs.FS) (faults []string, err error) {
	names, err := filesOf(tree, "*.go")
	if err != nil {
		return nil, err
	}
	packages := map[string]bool{} // by directory: has a comment
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		dir := path.Join(path.Dir(name), parsed.Name.Name)
		packages[dir] = packages[dir] || parsed.Doc != nil
		c := commentCheck{files: files}
		for _, decl := range parsed.Decls {
			c.decl(decl)
		}
		faults = append(faults, c.faults...)
	}
	for dir, documented := range packages {
		if !documented {
			faults = append(faults, fmt.Sprintf("package %s has no comment", dir))
		}
	}
	slices.Sort(faults)
	return faults, nil
}

type commentCheck struct {
	files  *token.FileSet
	faults []string
}

func (c *commentCheck) decl(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		receiver := receiverName(d)
		if d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
			c.check(d.Name, strings.TrimPrefix(receiver+".", ".")+d.Name.Name, d.Doc, "")
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			c.spec(d, spec)
		}
	}
}

func (c *commentCheck) spec(group *ast.GenDecl, spec ast.Spec) {
	alone := !group.Lparen.IsValid()
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			doc := s.Doc
			if alone {
				doc = group.Doc
			}
			c.check(s.Name, s.Name.Name, doc, "A ", "An ", "The ", "")
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			switch {
			case !name.IsExported():
			case alone:
				c.check(name, name.Name, group.Doc, "")
			case group.Doc == nil:
				c.check(name, name.Name, s.Doc, "")
			}
		}
	}
}

// check wants doc to begin with one of the articles and the name.
func (c *commentCheck) check(name *ast.Ident, shown string, doc *ast.CommentGroup, articles ...string) {
	position := c.files.Position(name.Pos())
	where := fmt.Sprintf("%s:%d", position.Filename, position.Line)
	if text := doc.Text(); text == "" {
		c.faults = append(c.faults, fmt.Sprintf("%s: %s has no comment", where, shown))
	} else if !slices.ContainsFunc(articles, func(article string) bool {
		rest, ok := strings.CutPrefix(text, article+name.Name)
		return ok && (rest == "" || strings.ContainsAny(rest[:1], " \n,.:;'()["))
	}) {
		c.faults = append(c.faults, fmt.Sprintf("%s: the comment of %s does not begin with %s", where, shown, name.Name))
	}
}

// receiverName is the name of the type that a method is declared on, "" for a
// function.
func receiverName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
