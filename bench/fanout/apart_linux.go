package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// On loopback the kernel does the receivers' part of TCP in the sender's time, and a server is charged with what its clients'
// machines would do. A run that keeps them apart has a network of its own, where packets are received on the generator's core, and
// the servers have the other cores for themselves. What a server is charged with then is its own part, as with a network between them.

// serversMark tells a process that it is the one inside, and which cores are left to servers.
const serversMark = "BENCH_SERVER_CORES"

// isApart reports whether this process has a network of its own.
func isApart() bool { return os.Getenv(serversMark) != "" }

// runApart runs the same command in a network of its own. Whatever needs the other one has been built and installed.
func (b *bench) runApart(ctx context.Context) error {
	all, err := ownCores()
	if err != nil {
		return err
	}
	if len(all) < 2 {
		return errors.New("-apart needs two cores, one for the servers and one for the generator")
	}
	servers, generator := all[:len(all)-1], all[len(all)-1:]
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(os.Args[1:], "-freshet", b.freshetBinary)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), serversMark+"="+strings.Trim(fmt.Sprint(servers), "[]"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = startOn(generator, cmd)
	if errors.Is(err, syscall.EPERM) {
		return errors.New("-apart makes a network of its own, which only root may do")
	}
	if err != nil {
		return err
	}
	err = cmd.Wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		b.close()
		os.Exit(ended.ExitCode()) // it has said why
	}
	return err
}

// ownCores are those that this process may use.
func ownCores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cores []int
	for i := 0; len(cores) < set.Count(); i++ {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores, nil
}

// serverCores are those that servers may use, nil for all.
func serverCores() (cores []int, err error) {
	for word := range strings.FieldsSeq(os.Getenv(serversMark)) {
		core, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", serversMark, err)
		}
		cores = append(cores, core)
	}
	return cores, nil
}

// startOn starts a command that may use these cores only, which it inherits from the thread that starts it.
func startOn(cores []int, cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during unix.CPUSet
	for _, core := range cores {
		during.Set(core)
	}
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, &during); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &before))
}

// settleIn makes the network of this process ready: packets are received on the core that it runs on.
func settleIn() error {
	own, err := ownCores()
	if err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil { // the one that is there shows the other network
		return fmt.Errorf("/sys: %w", err)
	}
	return os.WriteFile("/sys/class/net/lo/queues/rx-0/rps_cpus", []byte(coreMask(own[0])), 0)
}

// coreMask is the set of one core as the kernel writes it: words of 32, the highest first.
func coreMask(core int) string {
	return fmt.Sprintf("%x", 1<<(core%32)) + strings.Repeat(",00000000", core/32)
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
