package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// needCommand makes sure that a program is there, by installing packages if that is possible.
func (b *bench) needCommand(name string, packages ...string) error {
	if _, err := exec.LookPath(name); err == nil {
		return nil
	}
	if err := b.install(packages...); err != nil {
		return err
	}
	_, err := exec.LookPath(name)
	return err
}

// install installs Debian packages. Their services are not started: the benchmark starts its own on its own ports.
func (b *bench) install(packages ...string) error {
	list := strings.Join(packages, " ")
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("%s is missing, and this system has no apt-get to install it", list)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s is missing; install it with: sudo apt-get install %s", list, list)
	}
	b.say("installing %s", list)
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		cmd := exec.Command(apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, lastLines(string(text), 3))
		}
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
