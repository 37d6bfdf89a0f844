//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "fanout: this benchmark reads /proc and uses epoll; it runs on Linux only")
	os.Exit(1)
}
