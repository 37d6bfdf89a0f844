package jetstream

import (
	"strings"
	"time"

	"github.com/freshet-io/freshet/internal/grid"
)

// roster is which nodes have subscribers of which topics, as far as announcements tell: nodes say what they joined and left, and repeat
// all of it every few seconds, so that a lost announcement and a dead node are noticed. Its owner has a lock for it.
type roster struct {
	listeners grid.Listeners[arrival]
	anywhere  map[string]int // how many nodes are there, by topic, this one included
	others    map[string]*otherNode
}

// arrival says that the first node came to a topic, or that the last one left.
type arrival struct {
	topic   string
	present bool
}

type otherNode struct {
	heard  time.Time
	topics map[string]string // and the round in which they were last announced
}

// silentAfter is how long a node may announce nothing before it is taken as gone.
const silentAfter = 10 * time.Second

// Announcements have the node, one of these, and what it is about.
const (
	announceJoined = "+" // a topic
	announceLeft   = "-" // a topic
	announceAll    = "=" // a round, and topics of it
	announceEnd    = "." // the round: all that is left of earlier ones is over
)

func newRoster() *roster {
	return &roster{anywhere: make(map[string]int), others: make(map[string]*otherNode)}
}

func (r *roster) came(topic string) {
	if r.anywhere[topic]++; r.anywhere[topic] == 1 {
		r.listeners.Tell(arrival{topic, true})
	}
}

func (r *roster) left(topic string) {
	if r.anywhere[topic]--; r.anywhere[topic] <= 0 {
		delete(r.anywhere, topic)
		r.listeners.Tell(arrival{topic, false})
	}
}

// announced takes the announcement of another node.
func (r *roster) announced(node, kind string, rest []string) {
	o := r.others[node]
	if o == nil {
		o = &otherNode{topics: make(map[string]string)}
		r.others[node] = o
	}
	o.heard = time.Now()
	switch kind {
	case announceJoined:
		r.add(o, rest[0], "")
	case announceLeft:
		r.remove(o, rest[0])
	case announceAll:
		for _, topic := range rest[1:] {
			r.add(o, topic, rest[0])
		}
	case announceEnd:
		for topic, round := range o.topics {
			// What came while the round was told is in no round yet; the next one decides.
			if round != rest[0] && round != "" {
				r.remove(o, topic)
			} else if round == "" {
				o.topics[topic] = "?"
			}
		}
	}
}

func (r *roster) add(o *otherNode, topic, round string) {
	_, known := o.topics[topic]
	o.topics[topic] = round
	if !known {
		r.came(topic)
	}
}

func (r *roster) remove(o *otherNode, topic string) {
	if _, known := o.topics[topic]; known {
		delete(o.topics, topic)
		r.left(topic)
	}
}

// forgetSilent takes nodes that said nothing for some time as gone.
func (r *roster) forgetSilent() {
	for id, o := range r.others {
		if time.Since(o.heard) < silentAfter {
			continue
		}
		delete(r.others, id)
		for topic := range o.topics {
			r.left(topic)
		}
	}
}

// forgetOthers leaves this node alone in the roster.
func (r *roster) forgetOthers() {
	for _, o := range r.others {
		for topic := range o.topics {
			if r.anywhere[topic]--; r.anywhere[topic] <= 0 {
				delete(r.anywhere, topic)
			}
		}
	}
	clear(r.others)
}

// announcement is the text of one.
func announcement(node, kind string, rest ...string) []byte {
	return []byte(strings.Join(append([]string{node, kind}, rest...), " "))
}

// parseAnnouncement reports whether the text is one.
func parseAnnouncement(text []byte) (node, kind string, rest []string, ok bool) {
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return "", "", nil, false
	}
	return fields[0], fields[1], fields[2:], true
}
