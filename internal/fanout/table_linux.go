package fanout

import (
	"iter"
	"time"
)

// table finds the connections of a loop by their descriptors.
type table struct {
	byFD   []*conn // nil where a descriptor is not ours
	count  int
	serial uint32 // of the last connection that came
}

// add enters a connection and gives it a serial, which tells it from others that have its descriptor later.
func (t *table) add(c *conn, now time.Time) {
	for int(c.fd) >= len(t.byFD) {
		t.byFD = append(t.byFD, nil)
	}
	t.byFD[c.fd] = c
	t.count++
	t.serial++
	c.since, c.serial = uint32(now.Unix()), t.serial
}

func (t *table) remove(c *conn) {
	t.byFD[c.fd] = nil
	t.count--
}

// find returns the connection with the serial, or nil if it is gone.
func (t *table) find(fd int, serial uint32) *conn {
	if fd < 0 || fd >= len(t.byFD) {
		return nil
	}
	if c := t.byFD[fd]; c != nil && c.serial == serial {
		return c
	}
	return nil
}

// all returns every connection. The present one may be removed meanwhile.
func (t *table) all() iter.Seq[*conn] {
	return func(yield func(*conn) bool) {
		for _, c := range t.byFD {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}
