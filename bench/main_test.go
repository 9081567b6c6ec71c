package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadFlagsAreTold(t *testing.T) {
	for _, args := range [][]string{{"-no-such-flag"}, {"-case", "("}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("run(%q) succeeded", args)
		}
	}
}

func TestNoCaseMeansNoPage(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := run([]string{"-quick", "-out", dir, "-case", "no such case"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
		t.Errorf("wrote %v", files)
	}
}

func TestTheDocsAreFoundFromWithin(t *testing.T) {
	got, err := docs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(got), "go.mod")); err != nil || filepath.Base(got) != "docs" {
		t.Errorf("docs() = %q, %v", got, err)
	}
	t.Chdir(t.TempDir())
	if got, err := docs(); err == nil {
		t.Errorf("docs() outside of the repository = %q", got)
	}
}
