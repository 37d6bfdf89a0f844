package jetstream

import (
	"context"
	"time"
)

// Deafen makes a node miss the news of a topic, as if they got lost.
func Deafen(n *Grid, topic string) {
	n.mu.Lock()
	s := n.slots[token(topic)]
	n.mu.Unlock()
	s.following.Lock()
	defer s.following.Unlock()
	_ = s.sub.Unsubscribe()
}

// Compared reports whether a topic was compared with the stream since the node follows it, in search of what got lost.
func Compared(n *Grid, topic string) bool {
	n.mu.Lock()
	s := n.slots[token(topic)]
	n.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swept
}

// DeafenNotices makes a node miss notices, as if they and the questions about them got lost.
func DeafenNotices(n *Grid) {
	_ = n.notices.sub.Unsubscribe()
	n.nodes.answers.Add(noticeQuestion, nil)() // in place of the one that is there, and gone
}

// DeafenRepeats makes a node miss the notices that the stream repeats.
func DeafenRepeats(n *Grid) { _ = n.notices.sub.Unsubscribe() }

// Die ends a node's connection as a crash would: nobody is told.
func Die(n *Grid) { n.conn.Close() }

// ExpectedAfter counts the nodes that should answer after one was silent for some time.
func ExpectedAfter(d time.Duration) int {
	var p natsNodes
	p.init()
	p.peers["other"] = &peer{heard: time.Now(), names: map[string]bool{"q": true}}
	time.Sleep(d)
	return len(p.expected("q"))
}

// OpenWithClock opens a grid in a machine whose clock is wrong.
func OpenWithClock(ctx context.Context, opts Options, clock func() time.Time) (*Grid, error) {
	return open(ctx, opts, clock)
}
