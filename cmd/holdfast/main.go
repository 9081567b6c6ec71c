// Command holdfast shows what Holdfast's policies do: see holdfast lab --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // whoever interrupts twice does not want to wait
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
