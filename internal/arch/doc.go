// Package arch holds the picture of ARCHITECTURE.md against the code: which package may import which, who may know
// SQL, NATS or the operating system, and that every package says what it is. It has tests only.
package arch
