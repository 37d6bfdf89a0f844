package router

import (
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// maxWait is how long a publication may have waited and still be published on top of what came from another node meanwhile. Its publisher
// may have given up and published that; a node that was cut off does not hear of it.
const maxWait = time.Second

// sequencer lets one publication of this node to a topic go after the other: at the same time they would only lose races against each
// other. It remembers what the last one was published on, and so knows what came from other nodes in between.
type sequencer struct {
	mu sync.Mutex // held during a publication, or while items expire

	// Guarded by mu.
	base  freshet.Position // what the last publication was published on, or led to
	moved time.Time        // when this node learned that another one had published since
	found time.Time        // when this node came to the topic and read the document that was there; zero: there was none
}

// begin tells where the topic was when this node came to it.
func (s *sequencer) begin(pos freshet.Position, now time.Time) {
	s.base = pos
	if !pos.IsZero() {
		s.found = now
	}
}

// stored tells where a publication of this node led.
func (s *sequencer) stored(pos freshet.Position) { s.base = pos }

// isOvertaken reports whether another node published since a publication was received, too long ago to come after it. The topic is at pos,
// of which this node learned at that time. What this node published itself is in the order in which it came, and so is what it had
// heard of before.
func (s *sequencer) isOvertaken(pos freshet.Position, learned, received, now time.Time) bool {
	if pos != s.base {
		s.base = pos
		if !pos.IsZero() { // nothing is newer where nothing is left
			s.moved = learned
		}
	}
	// What was there when the node came to the topic may be newer than a publication that waited long until then.
	return now.Sub(received) > maxWait && !s.moved.Before(received) || s.found.Sub(received) > maxWait
}
