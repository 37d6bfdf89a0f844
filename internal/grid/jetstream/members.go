package jetstream

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// members is what this node knows of the others, as far as nodes need to wait for each other: every node says every two seconds that
// it is there and which questions it answers. One that starts asks the others to say so at once; one that stops says goodbye; one that
// died is known by the servers, which tell whoever asks it that nobody listens; one that was silent for some seconds is not asked any more.
// But whether it died, or was only cut off and still has its subscribers, nobody can tell; so it is remembered for some minutes.
type members struct {
	link  *link
	names func() []string // of the questions that this node answers

	mu    sync.Mutex
	peers map[string]*peer
}

const (
	nodeSilent = 3 * beatEvery
	nodeGone   = 5 * time.Minute // a node that said no goodbye and was silent for so long is dead
)

// peer is another node.
type peer struct {
	heard time.Time
	lost  bool            // it cannot be asked, until it is heard again
	names map[string]bool // of questions that it answers
}

// isSilent reports whether it is not worth asking.
func (p *peer) isSilent() bool { return p.lost || time.Since(p.heard) > nodeSilent }

func newMembers(l *link, names func() []string) *members {
	return &members{link: l, names: names, peers: make(map[string]*peer)}
}

func (m *members) listen() error {
	_, err := m.link.conn.Subscribe(m.link.subject("node", "all"), m.hear)
	return err
}

// say tells the others about this node: "hello" asks them to do the same, "here" does not, "bye" is the last word.
func (m *members) say(word string) {
	text := strings.Join(append([]string{m.link.node, word}, m.names()...), " ")
	_ = m.link.conn.Publish(m.link.subject("node", "all"), []byte(text)) // repeated anyway; without a connection nobody hears it
}

func (m *members) hear(msg *nats.Msg) {
	fields := strings.Fields(string(msg.Data))
	if len(fields) < 2 || fields[0] == m.link.node {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if fields[1] == "bye" {
		delete(m.peers, fields[0])
		return
	}
	known := &peer{heard: time.Now(), names: make(map[string]bool)}
	for _, name := range fields[2:] {
		known.names[name] = true
	}
	m.peers[fields[0]] = known
	if fields[1] == "hello" {
		m.say("here")
	}
}

// known are the other nodes that should answer to a name, and whether there may be more that cannot be asked.
func (m *members) known(name string) (all []string, silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, peer := range m.peers {
		switch {
		case time.Since(peer.heard) > nodeGone:
			delete(m.peers, id)
		case peer.isSilent():
			silent = true
		case peer.names[name]:
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, silent
}

// lose takes a node as gone. If it only lost its connection, it says so when it is back.
func (m *members) lose(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if peer := m.peers[id]; peer != nil {
		peer.lost = true
	}
}
