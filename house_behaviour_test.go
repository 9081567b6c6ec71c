package holdfast_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
)

// rowPattern finds the number of a row on the page, citePattern the rows that a test
// names: "BEHAVIOUR 15", "BEHAVIOUR 56, 57", "BEHAVIOUR 18 and 20".
var (
	rowPattern  = regexp.MustCompile(`(?m)^(\d+)\. `)
	citePattern = regexp.MustCompile(`BEHAVIOUR ((?:\d+(?:, | and )?)+)`)
	number      = regexp.MustCompile(`\d+`)
)

// rowFaults tells which rows of docs/behaviour.md no test names.
func rowFaults(tree fs.FS) (faults []string, err error) {
	page, err := fs.ReadFile(tree, "docs/behaviour.md")
	if err != nil {
		return nil, err
	}
	names, err := filesOf(tree, "*_test.go")
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		for _, cite := range citePattern.FindAllStringSubmatch(string(text), -1) {
			for _, row := range number.FindAllString(cite[1], -1) {
				named[row] = true
			}
		}
	}
	rows := rowPattern.FindAllStringSubmatch(string(page), -1)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			faults = append(faults, fmt.Sprintf("docs/behaviour.md: row %s stands in place %d", row[1], i+1))
		}
		if !named[row[1]] {
			faults = append(faults, fmt.Sprintf("docs/behaviour.md: no test names row %s", row[1]))
		}
	}
	if len(rows) == 0 {
		faults = append(faults, "docs/behaviour.md: has no rows")
	}
	return faults, nil
}
