package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
)

//go:embed limit/limit.c
var limitSource string

// buildLimit compiles the limit program into the run's directory.
func buildLimit(b *bench) error {
	if b.limitProgram != "" {
		return nil
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return errors.New("the limit program needs gcc")
	}
	source, err := b.files.write("limit.c", limitSource)
	if err != nil {
		return err
	}
	out := b.files.path("limit")
	if text, err := exec.Command(gcc, "-O2", "-pthread", "-o", out, source).CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the limit program: %w: %s", err, text)
	}
	b.limitProgram = out
	return nil
}

// startLimit returns a start of the limit program in one of its ways: "each", "waiting", "deep" or "beats".
func startLimit(way string) func(context.Context, *bench, *place) (*endpoint, error) {
	return func(ctx context.Context, b *bench, _ *place) (*endpoint, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		p, err := startProcess(b.limitProgram, strconv.Itoa(ports[0]), way)
		if err != nil {
			return nil, err
		}
		address := loopback(ports[0])
		return &endpoint{
			publish:   address.String(),
			subscribe: address,
			topics:    []topic{peerTopic("/", "/")},
			process:   p,
		}, awaitPort(ctx, p, address.String())
	}
}
