// Command freshet is the whole service in one binary. It only connects the process to internal/cli: signals in, exit
// code out.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // TZ works where the system has no time zones, as in the container image

	"github.com/freshet-io/freshet/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := cli.CancelOnSignal(context.Background(), signals, os.Exit)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
