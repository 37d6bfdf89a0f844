// Package nowait reads and writes sockets without waiting and without telling Go's scheduler.
//
// Before a system call that may sleep the scheduler makes ready to give the processor to somebody else, and if the process was idle
// it also wakes the runtime's monitor, which then looks fifty times, every 20 µs, whether it must. A server with a hundred
// publications a second so spends nearly as much on the monitor as on the publications. These calls never sleep, so the scheduler
// need not hear of them.
//
// An error of [syscall.EAGAIN] means that there is nothing to be read yet, or no room; package net says when to try again.
package nowait
