package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// asCommand in the environment makes the test binary the command itself.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu  sync.Mutex // guards the field below
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// runHere runs the command in this process.
func runHere(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"", "--help", "lab", "lab --help", "lab run --help", "lab serve --help"} {
		code, stdout, stderr := runHere(t.Context(), strings.Fields(line)...)
		if code != exitOK || !strings.Contains(stdout, "Usage:") || stderr != "" {
			t.Errorf("holdfast %s: %d, stdout %q, stderr %q", line, code, stdout, stderr)
		}
	}
}

// What is wrong is told in one line on stderr, and nothing else is.
func TestUsageErrors(t *testing.T) {
	tests := []struct{ line, want string }{
		{"lap", `unknown command "lap" for "holdfast"`},
		{"lab walk", `unknown command "walk" for "holdfast lab"`},
		{"lab serve now", `unknown command "now" for "holdfast lab serve"`},
		{"lab run healthy sick", `unknown scenario "sick": must be one of healthy, naive-slow, naive-down, timeout-slow, `},
		{"lab run --list sick", `unknown scenario "sick"`},
		{"lab run --fast", "unknown flag: --fast"},
		{"lab run --speed quick", `invalid argument "quick"`},
		{"lab run --speed 0", "--speed 0: must be between 0.1 and 100"},
		{"lab run --speed -1", "--speed -1: must be between"},
		{"lab run --speed NaN", "--speed NaN: must be between"},
		{"lab run --speed 1e9", "--speed 1e+09: must be between"},
		{"lab run --json --list", "[json list]"},
		{"lab serve --order-port 70000 --payment-port 0", "order service: "},
		{"lab serve --payment-port -1", "payment service: "},
	}
	for _, tt := range tests {
		code, stdout, stderr := runHere(t.Context(), strings.Fields(tt.line)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("holdfast %s: %d, stdout %q, want 2 and nothing", tt.line, code, stdout)
		}
		if !strings.HasPrefix(stderr, "holdfast: ") || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("holdfast %s: stderr %q, want one line with %q", tt.line, stderr, tt.want)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, args := range [][]string{
		{"lab", "serve", "--payment-port", port, "--order-port", "0"},
		{"lab", "serve", "--payment-port", "0", "--order-port", port},
	} {
		code, stdout, stderr := runHere(t.Context(), args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, "in use") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestList(t *testing.T) {
	code, stdout, _ := runHere(t.Context(), "lab", "run", "--list")
	if lines := strings.Count(stdout, "\n"); code != exitOK || lines != len(scenario.Names()) {
		t.Errorf("%d, %d lines, want one for each of %d scenarios", code, lines, len(scenario.Names()))
	}
	_, stdout, _ = runHere(t.Context(), "lab", "run", "--list", "trap", "burst")
	if fields := strings.Fields(stdout); fields[0] != "trap" || strings.Count(stdout, "\n") != 2 {
		t.Errorf("list of two: %q", stdout)
	}
}

func TestRunAsText(t *testing.T) {
	code, stdout, stderr := runHere(t.Context(), "lab", "run", "healthy", "naive-down")
	if code != exitOK || stderr != "" {
		t.Errorf("%d, stderr %q", code, stderr)
	}
	for _, want := range []string{
		"2 scenarios, about 1 s. This run is at full speed.", "\nhealthy  ", "\nnaive-down  ", "others report",
		"\n  Order calls Payment through: call (no policies)\n",
		" ok  orders paid", ": all showed what they must",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("colour, though this is no terminal")
	}
}

func TestRunAsJSON(t *testing.T) {
	code, stdout, stderr := runHere(t.Context(), "lab", "run", "--json", "--speed", "2", "healthy", "naive-down")
	if code != exitOK || stderr != "" {
		t.Errorf("%d, stderr %q", code, stderr)
	}
	results := decode(t, stdout)
	if len(results) != 2 || results[0].Scenario != "healthy" || results[1].Scenario != "naive-down" {
		t.Fatalf("%+v", results)
	}
	for _, r := range results {
		if !r.OK || r.Speed != 2 || r.Runs != 1 || len(r.Checks) == 0 || len(r.Parts) != 1 || r.Parts[0].Orders == 0 || r.Parts[0].Pipeline != "call" {
			t.Errorf("%+v", r)
		}
	}
}

func decode(t *testing.T, lines string) (results []scenario.Result) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var r scenario.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		results = append(results, r)
	}
	return results
}

func TestExitCode(t *testing.T) {
	tests := []struct {
		name        string
		err         error
		interrupted bool
		want        int
		stderr      string
	}{
		{"fine", nil, false, exitOK, ""},
		{"fine, and interrupted just then", nil, true, exitOK, ""},
		{"a scenario failed", errFailed, false, exitFailed, ""},
		{"interrupted", context.Canceled, true, exitInterrupted, "holdfast: interrupted\n"},
		{"usage", errors.New("unknown\n\nDid you mean this?"), false, exitUsage, "holdfast: unknown\n"},
		{"disk full", reporting(errors.New("disk full")), false, exitFailed, "holdfast: disk full\n"},
	}
	for _, tt := range tests {
		var stderr bytes.Buffer
		if got := exitCode(tt.err, tt.interrupted, &stderr); got != tt.want || stderr.String() != tt.stderr {
			t.Errorf("%s: %d, stderr %q, want %d, %q", tt.name, got, stderr.String(), tt.want, tt.stderr)
		}
	}
}

// judged is a scenario that takes no time, and shows what ok says.
func judged(name string, ok bool) scenario.Scenario {
	return scenario.Scenario{
		Name:  name,
		Parts: []scenario.Part{{Run: func(context.Context, *scenario.Bench) error { return nil }}},
		Judge: func([]scenario.Measured) []scenario.Check { return []scenario.Check{{Expected: "1", OK: ok}} },
	}
}

func TestFailedScenarioFailsTheRunButDoesNotEndIt(t *testing.T) {
	var out bytes.Buffer
	scenarios := []scenario.Scenario{judged("good", true), judged("bad", false), judged("late", true)}
	if err := tell(t.Context(), scenarios, 1, &out); !errors.Is(err, errFailed) {
		t.Errorf("error %v, want errFailed", err)
	}
	for _, want := range []string{"\nlate  ", "FAIL", ": 1 did not show what it must: [bad]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSteadily(t *testing.T) {
	broken := errors.New("broken")
	good := scenario.Result{OK: true, StalledMS: 100}
	bad := scenario.Result{StalledMS: 2}
	disturbed := scenario.Result{StalledMS: 100}
	tests := []struct {
		name     string
		results  []scenario.Result
		err      error
		wantOK   bool
		wantRuns int
	}{
		{"good", []scenario.Result{good}, nil, true, 1},
		{"bad on a steady machine", []scenario.Result{bad, good}, nil, false, 1},
		{"good again", []scenario.Result{disturbed, good}, nil, true, 2},
		{"bad again", []scenario.Result{disturbed, bad, good}, nil, false, 2},
		{"never good", []scenario.Result{disturbed, disturbed, disturbed, good}, nil, false, 3},
		{"interrupted", []scenario.Result{{}, good}, broken, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var paces []scenario.Pace
			got, err := steadily(9, func(pace scenario.Pace) (scenario.Result, error) {
				paces = append(paces, pace)
				return tt.results[len(paces)-1], tt.err
			})
			if got.OK != tt.wantOK || got.Runs != tt.wantRuns || !errors.Is(err, tt.err) {
				t.Errorf("%+v, %v; want OK %v after %d runs", got, err, tt.wantOK, tt.wantRuns)
			}
			if want := []scenario.Pace{9, 6, 4}[:tt.wantRuns]; !slices.Equal(paces, want) {
				t.Errorf("at speeds %v, want %v", paces, want)
			}
		})
	}
}

func TestColourful(t *testing.T) {
	if colourful(&bytes.Buffer{}) {
		t.Error("a buffer is a terminal")
	}
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if colourful(f) {
		t.Error("a file is a terminal")
	}
}

func TestQuietly(t *testing.T) {
	if p := quietly(scenario.Scenario{}); *p != (report.Progress{}) {
		t.Error("a bar without a terminal")
	}
}

func TestServeHere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
	code, stdout, stderr := runHere(ctx, "lab", "serve", "--order-port", "0", "--payment-port", "0", "--naive")
	if code != exitInterrupted || stderr != "holdfast: interrupted\n" {
		t.Errorf("%d, stderr %q", code, stderr)
	}
	if !strings.Contains(stdout, "charges through\n  call\n") || !strings.Contains(stdout, "curl -X POST http://127.0.0.1:") {
		t.Errorf("stdout %q", stdout)
	}
}
