package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == "floor" {
		fmt.Fprintln(os.Stderr, "gateway:", floorMain(os.Args[2], os.Args[3], os.Args[4]))
		os.Exit(1)
	}
	b := &bench{}
	flag.StringVar(&b.binary, "freshet", "", "the freshet to measure (default: built from this repository)")
	flag.DurationVar(&b.length, "length", 4*time.Second, "how long each measurement takes")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each case is measured, in turns; the median counts")
	flag.IntVar(&b.connections, "connections", 64, "connections of the load generator")
	flag.IntVar(&b.many, "apis", 10_000, "registered APIs in the case with many")
	flag.BoolVar(&b.floors, "floors", true, "also measure the pieces that the gateway is built from")
	flag.StringVar(&b.profile, "profile", "", "write a CPU profile of freshet without plugins to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}
