//go:build !unix

package gateway

func (c *straightConn) exchange(p []byte) (int, error) { return c.exchangeSlowly(p) }

func (*straightConn) takeStep(uintptr) bool { return true }
