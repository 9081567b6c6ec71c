package holdfast_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A markdown page, taken apart as far as its gates need.
type markdown struct {
	name     string
	prose    []string // line by line; those inside code blocks are empty
	blocks   []codeBlock
	headings []string
}

type codeBlock struct {
	line     int // of the opening fence, from 1
	language string
	code     []string
	closed   bool
}

// snippetFaults tells which Go code on the pages is not part of a test: what is not
// compiled and run is wrong sooner or later. Indentation and empty lines may differ.
func snippetFaults(tree fs.FS) (faults []string, err error) {
	pages, err := pagesOf(tree)
	if err != nil {
		return nil, err
	}
	names, err := filesOf(tree, "*_test.go")
	if err != nil {
		return nil, err
	}
	var tests []string
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		tests = append(tests, plainCode(strings.Split(string(text), "\n")))
	}
	for _, p := range pages {
		for _, b := range p.blocks {
			code := plainCode(b.code)
			if !b.closed {
				faults = append(faults, fmt.Sprintf("%s:%d: the block never ends", p.name, b.line))
			} else if b.language == "go" && !slices.ContainsFunc(tests, func(test string) bool { return strings.Contains(test, code) }) {
				faults = append(faults, fmt.Sprintf("%s:%d: no test holds this code", p.name, b.line))
			}
		}
	}
	if len(pages) == 0 {
		faults = append(faults, "no page found")
	}
	return faults, nil
}

// plainCode joins the lines without indentation, trailing and empty lines, each
// between two line ends.
func plainCode(lines []string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)|^\s*\[[^\]]+\]:\s+<?([^\s>]+)|(?:href|src)="([^"]+)"`)
)

// linkFaults tells which links of the pages lead to no file, or to no heading of it.
func linkFaults(tree fs.FS) (faults []string, err error) {
	pages, err := pagesOf(tree)
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		for i, line := range p.prose {
			for _, match := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				target := match[1] + match[2] + match[3] // the one that matched
				if fault := linkFault(tree, pages, p, target); fault != "" {
					faults = append(faults, fmt.Sprintf("%s:%d: %s: %s", p.name, i+1, target, fault))
				}
			}
		}
	}
	return faults, nil
}

func linkFault(tree fs.FS, pages []markdown, from markdown, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	name := from.name
	if u.Path != "" {
		name = path.Join(path.Dir(from.name), u.Path)
	}
	if _, err := fs.Stat(tree, name); err != nil || path.IsAbs(u.Path) {
		return "no such file"
	}
	i := slices.IndexFunc(pages, func(p markdown) bool { return p.name == name })
	if u.Fragment != "" && i >= 0 && !slices.Contains(anchors(pages[i].headings), u.Fragment) {
		return "no such heading"
	}
	return ""
}

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// anchors are the names under which GitHub shows headings.
func anchors(headings []string) (names []string) {
	seen := map[string]int{}
	for _, heading := range headings {
		text := linkText.ReplaceAllString(strings.TrimLeft(heading, "# "), "$1")
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, text)
		n := seen[name]
		seen[name]++
		if n > 0 {
			name += "-" + strconv.Itoa(n)
		}
		names = append(names, name)
	}
	return names
}

// skeletonFaults tells which policies' pages are not built like the others.
func skeletonFaults(tree fs.FS) (faults []string, err error) {
	sections := []string{
		"## The picture", "## Ten lines to copy", "## What counts as failure", "## Settings", "## Errors", "## Events",
		"## Where it stands", "## Mistakes",
	}
	for _, pkg := range policyPackages {
		p, err := parsePage(tree, path.Join("docs", pkg+".md"))
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		got := slices.DeleteFunc(p.headings, func(h string) bool { return strings.HasPrefix(h, "###") })
		if len(got) == 0 || !strings.HasPrefix(got[0], "# ") || !slices.Equal(got[1:], sections) {
			faults = append(faults, fmt.Sprintf("%s: its headings are %q, want a title and %q", p.name, got, sections))
		}
	}
	return faults, nil
}

// machinePath finds what only some machine has. Its own text must not match.
var machinePath = regexp.MustCompile(`(^|[^\w./~-])(/(home|root|Users|work|tmp|private|var|opt|mnt|usr/local|go/pkg)/\w|[A-Z]:\\Users)`)

// pathFaults tells which files hold an absolute path of somebody's machine.
func pathFaults(tree fs.FS) (faults []string, err error) {
	names, err := filesOf(tree, "*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(text, 0) >= 0 { // built, not written
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := machinePath.FindString(line); found != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: holds the path %s…", name, i+1, strings.TrimSpace(found)))
			}
		}
	}
	return faults, nil
}

func pagesOf(tree fs.FS) (pages []markdown, err error) {
	names, err := filesOf(tree, "*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := parsePage(tree, name)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func parsePage(tree fs.FS, name string) (markdown, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return markdown{}, err
	}
	p := markdown{name: name}
	fence := "" // of the block that the line is in
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		language := strings.TrimLeft(trimmed, "`")
		ticks := trimmed[:len(trimmed)-len(language)]
		last := len(p.blocks) - 1
		prose := ""
		switch {
		case fence != "" && language == "" && len(ticks) >= len(fence):
			fence, p.blocks[last].closed = "", true
		case fence != "":
			p.blocks[last].code = append(p.blocks[last].code, line)
		case len(ticks) >= 3 && !strings.Contains(language, "`"):
			language, _, _ = strings.Cut(language, " ")
			fence, p.blocks = ticks, append(p.blocks, codeBlock{line: i + 1, language: language})
		default:
			prose = line
		}
		p.prose = append(p.prose, prose)
		if strings.HasPrefix(prose, "#") {
			p.headings = append(p.headings, strings.TrimSpace(prose))
		}
	}
	return p, nil
}
