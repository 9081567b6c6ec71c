package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // a scenario did not show what it must
	exitUsage       = 2 // also where a port is in use
	exitInterrupted = 130
)

// errFailed is the error where the report has told what failed.
var errFailed = errors.New("a scenario did not show what it must")

// failure is an error that is no fault of the command line, such as a full disk.
type failure struct{ error }

// run runs the command and returns its exit code. When ctx ends, everything is shut
// down first.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)

	_, failed := errors.AsType[failure](err)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFailed):
		return exitFailed
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "holdfast: interrupted")
		return exitInterrupted
	case failed:
		_, _ = fmt.Fprintln(stderr, "holdfast:", oneLine(err))
		return exitFailed
	default:
		_, _ = fmt.Fprintln(stderr, "holdfast:", oneLine(err))
		return exitUsage
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "holdfast",
		Short:             "Resilience policies for Go, shown at work",
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              help,
	}
	lab := &cobra.Command{
		Use:   "lab",
		Short: "What each policy does during an outage, with real HTTP on this machine",
		Args:  cobra.NoArgs,
		RunE:  help,
	}
	lab.AddCommand(newRun(), newServe())
	root.AddCommand(lab)
	return root
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// oneLine keeps the first line: cobra adds suggestions below.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
