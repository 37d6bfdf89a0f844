//go:build !linux

package main

func main() { panic("the event loops that this measures exist on Linux only") }
