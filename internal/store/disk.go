package store

import (
	"errors"
	"os"
	"syscall"
)

// Space is what is left on a file system.
type Space struct {
	Free, Total uint64 // bytes; Free is what this process may use
	ReadOnly    bool
}

const (
	// fullBelow is less than a transaction needs: it writes pages of 4 KiB to the log, and index pages with them.
	fullBelow = 64 << 10
	// Below one hundredth of the disk somebody should make room. On small disks that is too late, on large ones too early.
	lowAtLeast, lowAtMost = 16 << 20, 1 << 30
)

func (s Space) full() bool { return s.Free < fullBelow }

func (s Space) low() bool { return s.Free < min(max(s.Total/100, lowAtLeast), lowAtMost) }

// disk is where the embedded database is.
type disk struct {
	dir   string
	space func(dir string) (Space, error) // errors.ErrUnsupported where the system does not say
}

// diagnose finds out why SQLite failed to read or write: it forgets what the operating system said as often as not.
func (d *disk) diagnose(err error) faultClass {
	if class, known := errnoClass(err); known {
		return class
	}
	if space, err := d.space(d.dir); err == nil {
		switch {
		case space.ReadOnly:
			return readOnly
		case space.full():
			return full
		}
	}
	if class, known := errnoClass(d.tryFile()); known {
		return class
	}
	return broken
}

// errnoClass reads what the operating system said.
func errnoClass(err error) (class faultClass, known bool) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return full, true
	case errors.Is(err, syscall.EROFS):
		return readOnly, true
	}
	return broken, false
}

// tryFile writes as much as a transaction would.
func (d *disk) tryFile() error {
	f, err := os.CreateTemp(d.dir, ".trial-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, fullBelow))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
