package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/freshet-io/freshet"
)

// dirLock keeps other processes away from a data directory. The operating system drops it when the process ends,
// however it ends; the file itself stays, since removing it would let two processes lock two files of one name.
type dirLock struct{ file *os.File }

// errLocked is what tryLock returns when another process holds the lock.
var errLocked = errors.New("locked")

func lockDir(dir string) (*dirLock, error) {
	f, err := openPrivate(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, unusable(dir, err)
	}
	if err := tryLock(f); err != nil {
		holder := readPID(f)
		f.Close()
		if errors.Is(err, errLocked) {
			return nil, freshet.Wrap(freshet.Conflict, err, fmt.Sprintf(
				"The data directory %s is in use by another freshet%s: stop that, or choose another directory", dir, holder))
		}
		return nil, unusable(dir, err)
	}
	// Only a hint for the message above, so a failure to write it is no failure.
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &dirLock{f}, nil
}

func readPID(f *os.File) string {
	text, _ := io.ReadAll(io.LimitReader(f, 20))
	if pid := strings.TrimSpace(string(text)); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// release may be called again, like Close of a database.
func (l *dirLock) release() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := errors.Join(unlock(l.file), l.file.Close())
	l.file = nil
	return err
}
