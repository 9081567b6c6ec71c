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

// errFailed is the error where a report has been printed.
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
	return exitCode(cmd.ExecuteContext(ctx), ctx.Err() != nil, stderr)
}

// exitCode is the code for how the command ended. It tells why, in one line.
func exitCode(err error, interrupted bool, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFailed) {
		return exitFailed // the report has told
	}
	if interrupted {
		_, _ = fmt.Fprintln(stderr, "holdfast: interrupted")
		return exitInterrupted
	}
	line, _, _ := strings.Cut(err.Error(), "\n") // cobra adds suggestions below
	_, _ = fmt.Fprintln(stderr, "holdfast:", line)
	if _, ok := errors.AsType[failure](err); ok {
		return exitFailed
	}
	return exitUsage
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
