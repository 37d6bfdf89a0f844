package cli

import (
	"context"
	"os"
	"syscall"
)

// CancelOnSignal returns a context that the first signal ends, so that the program can finish what it is doing. The
// second one calls exit with the code that shells give a process killed by it: somebody does not want to wait.
// Its goroutine lives as long as the process.
func CancelOnSignal(ctx context.Context, signals <-chan os.Signal, exit func(code int)) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-signals
		cancel()
		code := 1
		if s, ok := (<-signals).(syscall.Signal); ok {
			code = 128 + int(s)
		}
		exit(code)
	}()
	return ctx
}
