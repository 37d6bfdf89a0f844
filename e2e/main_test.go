// Package e2e runs the whole program as a process of its own and looks at it from outside: ports, signals, files,
// exit codes.
//
// The test binary is the program: it starts itself again with a variable set and then behaves as freshet. So tests
// need no build step, and the race detector watches the program as well. What can be tested closer to the code is
// tested there; nothing here reaches into a package.
package e2e

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/freshet-io/freshet/internal/cli"
)

// beFreshet makes the test binary behave as freshet.
const beFreshet = "FRESHET_TEST_BE_FRESHET"

func TestMain(m *testing.M) {
	if config := os.Getenv(beNATS); config != "" {
		runNATS(config)
		return
	}
	if os.Getenv(beFreshet) == "" {
		os.Exit(m.Run())
	}
	// The same lines as in cmd/freshet.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := cli.CancelOnSignal(context.Background(), signals, os.Exit)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
