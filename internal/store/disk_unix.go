//go:build linux || darwin

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// readOnlyMount is ST_RDONLY, and MNT_RDONLY where it is called that.
const readOnlyMount = 1

func spaceOf(dir string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Space{}, err
	}
	free := st.Bavail
	if os.Geteuid() == 0 {
		free = st.Bfree // what is kept back is kept for root
	}
	size := uint64(st.Bsize)
	return Space{Free: free * size, Total: st.Blocks * size, ReadOnly: st.Flags&readOnlyMount != 0}, nil
}
