package router_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"pgregory.net/rapid"
)

// reader holds what a client would hold.
type reader struct {
	feed    *router.Feed
	variant router.Variant
	cursor  fanout.Cursor
	doc     []byte
	lastID  string
}

func (r *reader) take(t *rapid.T, b fanout.Batch) {
	r.cursor = b.Next
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(b.Bytes), "\n\n"), "\n\n") {
		if frame == "" {
			continue
		}
		var id, name, data string
		for line := range strings.SplitSeq(frame, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "id":
				id = value
			case "event":
				name = value
			case "data":
				data = value
			}
		}
		before, known := freshet.ParsePosition(r.lastID)
		now, ok := freshet.ParsePosition(id)
		if !ok || known && now.Epoch == before.Epoch && now.Version <= before.Version {
			t.Fatalf("id %q after %q", id, r.lastID)
		}
		r.lastID = id
		if name == "snapshot" {
			r.doc = []byte(data)
			continue
		}
		patch, err := jsonpatch.DecodePatch([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if r.doc, err = patch.Apply(r.doc); err != nil {
			t.Fatalf("%s does not fit: %v", data, err)
		}
	}
}

// TestEveryReaderEndsWithTheNewestDocument: readers that read now and then, fall behind the log and the history, go and come back.
func TestEveryReaderEndsWithTheNewestDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := memory.New(memory.Options{})
		defer g.Close()
		rt := router.New(g, router.Options{ViewWork: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "view work")})
		defer rt.Close()
		topic, filter := snapshotTopic(), router.Filter{}
		if items := rapid.Bool().Draw(t, "items"); items {
			topic, filter = itemTopic(), router.ParseFilter("0,2,9")
		}
		var readers []*reader
		join := func(r *reader) {
			var err error
			if r.feed, err = rt.Subscribe(context.Background(), &topic, r.variant); err != nil {
				t.Fatal(err)
			}
			r.take(t, r.feed.Begin(r.lastID))
		}
		variants := []router.Variant{{Event: "snapshot"}, {Event: "snapshot", Mode: router.Snapshots}, {Event: "snapshot", Filter: filter}}
		for i := range 6 {
			r := &reader{variant: variants[i%len(variants)]}
			join(r)
			readers = append(readers, r)
		}
		pad := strings.Repeat("p", rapid.SampledFrom([]int{0, 300, 9000}).Draw(t, "pad"))
		n := 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2: // a burst
				for range rapid.SampledFrom([]int{1, 2, 20, 90}).Draw(t, "burst") {
					n++
					body := fmt.Sprintf(`{"n":%d,"pad":"%s","m":[%d,{"k":%d}],"old%d":1}`, n, pad, n%3, n%5, n%4)
					if topic.Publisher.Payload.Type == freshet.PayloadItem {
						body = fmt.Sprintf(`[{"id":%d,"n":%d,"pad":"%s"},{"id":%d,"m":%d}]`, n%5, n, pad, n%7, n%2)
					}
					if _, err := rt.Publish(context.Background(), &topic, router.Publication{Body: []byte(body)}); err != nil {
						t.Fatal(err)
					}
				}
			case 3:
				if rapid.IntRange(0, 5).Draw(t, "lose") == 0 {
					g.Delete(context.Background(), topic.ID)
				}
			case 4, 5:
				r := rapid.SampledFrom(readers).Draw(t, "who")
				r.feed.Close()
				join(r)
			default:
				r := rapid.SampledFrom(readers).Draw(t, "who")
				r.take(t, r.feed.Since(r.cursor))
			}
		}
		n++
		last := fmt.Sprintf(`{"last":%d}`, n)
		if topic.Publisher.Payload.Type == freshet.PayloadItem {
			last = fmt.Sprintf(`[{"id":2,"last":%d}]`, n)
		}
		if _, err := rt.Publish(context.Background(), &topic, router.Publication{Body: []byte(last)}); err != nil {
			t.Fatal(err)
		}
		want := map[router.Variant][]byte{}
		for _, v := range variants {
			fresh := &reader{variant: v}
			join(fresh)
			want[v] = fresh.doc
			fresh.feed.Close()
		}
		for _, r := range readers {
			for more := true; more; {
				batch := r.feed.Since(r.cursor)
				r.take(t, batch)
				more = batch.More
			}
			if !jsonpatch.Equal(r.doc, want[r.variant]) {
				t.Fatalf("a reader ended with %.200s, want %.200s", r.doc, want[r.variant])
			}
			if b := r.feed.Since(r.cursor); len(b.Bytes) > 0 {
				t.Fatalf("and still gets %s", b.Bytes)
			}
			r.feed.Close()
		}
	})
}
