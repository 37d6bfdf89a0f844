//go:build !unix

package keyfile

import "os"

// Exposed reports whether others than its owner can read the file. Modes say nothing about that here.
func Exposed(path string) (bool, error) {
	_, err := os.Stat(path)
	return false, err
}
