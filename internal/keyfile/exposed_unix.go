//go:build unix

package keyfile

import (
	"os"
	"syscall"
)

// Exposed reports whether others than its owner can read the file. A group may read what belongs to root, which is how
// system services and Kubernetes hand secrets to a program.
func Exposed(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	mode := info.Mode().Perm()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 && os.Geteuid() != 0 {
		return mode&0o007 != 0, nil
	}
	return mode&0o077 != 0, nil
}
