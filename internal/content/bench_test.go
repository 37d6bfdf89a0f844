package content

import (
	"fmt"
	"strings"
	"testing"
)

// benchItems returns a topic of n items.
func benchItems(b *testing.B, n int) *Items {
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, `,{"id":"i%d","name":"the item of number %d","price":%d.5,"stock":%d}`, i, i, i, i%9)
	}
	return items(b, byID, "["+body.String()[1:]+"]")
}

// BenchmarkAdvance is one revision of one item on a topic with ten thousand filters of twenty items, a hundred of which list it.
func BenchmarkAdvance(b *testing.B) {
	s := benchItems(b, 2000)
	views := NewViews(s)
	for f := range 10_000 {
		ids := make([]string, 20)
		for k := range ids {
			ids[k] = fmt.Sprintf("i%d", (f*7+k*101)%2000)
		}
		views.Open(NewFilter(ids...))
	}
	version := 0
	for b.Loop() {
		version++
		body := fmt.Sprintf(`[{"id":"i5","name":"the item of number 5","price":%d.5,"stock":5}]`, version)
		next := publish(b, byID, s, body, start).State.(*Items)
		views.Advance(s.Delta(next))
		s = next
	}
}

// BenchmarkPublish is one item of a hundred thousand.
func BenchmarkPublish(b *testing.B) {
	s := benchItems(b, 100_000)
	version := 0
	b.ReportAllocs()
	for b.Loop() {
		version++
		s = publish(b, byID, s, fmt.Sprintf(`[{"id":"i500","price":%d}]`, version), start).State.(*Items)
	}
}
