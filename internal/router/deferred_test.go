package router_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/router"
)

// TestWhatNobodyReadsIsNotMade: a publication costs the same however many filtered views there are whose readers do not read.
func TestWhatNobodyReadsIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const items, views, work = 200, 50, 1000
		r := newCounted(t, 0, router.Options{ViewWork: work})
		topic := newTopic(t, "item .id")
		publish := func(version int) {
			var b strings.Builder
			for i := range items {
				fmt.Fprintf(&b, `,{"id":%d,"version":%d}`, i, version)
			}
			r.mustPublish(&topic, "["+b.String()[1:]+"]")
		}
		publish(0)
		var feeds []*router.Feed
		var cursors []fanout.Cursor
		for v := range views {
			var ids []string
			for i := range items / 2 {
				ids = append(ids, fmt.Sprint((v+i)%items))
			}
			f, err := r.Subscribe(t.Context(), &topic, router.Variant{Event: "snapshot", Filter: router.ParseFilter(strings.Join(ids, ","))})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			feeds, cursors = append(feeds, f), append(cursors, f.Begin("").Next)
		}
		for version := range 10 {
			publish(version + 1)
			synctest.Wait()
		}
		// Each was brought along once, since its readers had everything, and then left alone.
		if late := r.Stats().Deferred; late != views {
			t.Errorf("%d views that nobody reads were made %d times by ten publications", views, late)
		}
		reads := 0
		defer feeds[7].Watch(func() { reads++ })()
		for range 2 {
			b := feeds[7].Since(cursors[7])
			cursors[7] = b.Next
			synctest.Wait()
			if b.Events != 1 {
				t.Errorf("a reader who comes back gets %d events", b.Events)
			}
		}
		if late := r.Stats().Deferred; late != views+1 || reads != 1 {
			t.Errorf("one reader came back: views were made %d times, and he was woken %d times", late, reads)
		}
		again := feeds[9].Begin("")
		if !strings.Contains(string(again.Bytes), `"version":10`) || again.Next != feeds[9].Head() {
			t.Errorf("who comes new gets %.100s, at %d of %d", again.Bytes, again.Next, feeds[9].Head())
		}
	})
}
