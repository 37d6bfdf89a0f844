//go:build !linux

package main

import "log"

func main() { log.Fatal("topics: it reads /proc, which only Linux has") }
