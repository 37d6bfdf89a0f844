//go:build !unix

package httpkit

const canPeek = false

func peek(uintptr) (gone, wait bool) { panic("httpkit: no socket can be looked into here") }

func readNow(uintptr, []byte) (int, bool, error) { panic("httpkit: no socket can be looked into here") }

func writeNow(uintptr, []byte) (int, bool, error) {
	panic("httpkit: no socket can be looked into here")
}
