//go:build !unix

package wire

// canReadNow says that sockets can be read and written in calls that never sleep.
const canReadNow = false

func readNow(uintptr, []byte) (int, bool, error) { panic("wire: not on this system") }

func writeNow(uintptr, []byte) (int, bool, error) { panic("wire: not on this system") }
