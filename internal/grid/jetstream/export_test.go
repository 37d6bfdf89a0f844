package jetstream

import (
	"context"
	"time"
)

// Deafen makes a node miss the news of a topic, as if they got lost.
func Deafen(g *Grid, topic string) {
	s := g.topics.find(token(topic))
	s.following.Lock()
	defer s.following.Unlock()
	_ = s.sub.Unsubscribe()
}

// Compared reports whether a topic was compared with the stream since the node follows it, in search of what got lost.
func Compared(g *Grid, topic string) bool {
	s := g.topics.find(token(topic))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swept
}

// DeafenNotices makes a node miss notices, as if they and the questions about them got lost.
func DeafenNotices(g *Grid) {
	DeafenRepeats(g)
	g.questions.answerers.Add(noticeQuestion, nil)() // in place of the one that is there, and gone
}

// DeafenRepeats makes a node miss the notices that the stream repeats.
func DeafenRepeats(g *Grid) { _ = g.notices.sub.Unsubscribe() }

// Die ends a node's connection as a crash would: nobody is told.
func Die(g *Grid) { g.link.conn.Close() }

// OpenWithClock opens a grid in a machine whose clock is wrong.
func OpenWithClock(ctx context.Context, opts Options, clock func() time.Time) (*Grid, error) {
	return open(ctx, opts, clock)
}
