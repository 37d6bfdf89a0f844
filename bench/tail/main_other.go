//go:build !linux

package main

import "log"

func main() { log.Fatal("tail: Linux only") }
