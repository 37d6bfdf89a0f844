package router_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/fanout"
	"github.com/freshet-io/freshet/internal/grid/memory"
	"github.com/freshet-io/freshet/internal/router"
)

func setUp(tb testing.TB) (*router.Router, func()) {
	g := memory.New(memory.Options{MessageTTL: time.Hour})
	r := router.New(g, router.Options{MessageTTL: time.Hour})
	return r, func() {
		r.Close()
		g.Close()
	}
}

func itemTopic() freshet.Topic {
	path, _ := freshet.ParseItemPath(".id")
	return freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadItem, ItemIDPath: path}}}
}

func snapshotTopic() freshet.Topic {
	return freshet.Topic{ID: freshet.NewID(), Publisher: freshet.Publisher{Type: freshet.HTTPPost, Payload: freshet.Payload{Type: freshet.PayloadSnapshot}}}
}

// document is n rows of which one changes with i.
func document(n, i int) []byte {
	var b strings.Builder
	b.WriteString(`{"rows":[`)
	for row := range n {
		if row > 0 {
			b.WriteByte(',')
		}
		v := 0
		if row == i%n {
			v = i
		}
		fmt.Fprintf(&b, `{"id":%d,"price":%d,"text":"some text of a usual length"}`, row, v)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// TestPublishingWithoutSubscribersAllocatesTheSameWhateverTheSize holds a promise of the publishing path.
func TestPublishingWithoutSubscribersAllocatesTheSameWhateverTheSize(t *testing.T) {
	allocs := map[int]float64{}
	for _, rows := range []int{10, 1000} {
		r, tearDown := setUp(t)
		defer tearDown()
		topic := snapshotTopic()
		var bodies [][]byte
		for i := range 60 {
			bodies = append(bodies, document(rows, i))
		}
		i := 0
		publish := func() {
			if _, err := r.Publish(context.Background(), &topic, router.Publication{Body: bodies[i]}); err != nil {
				t.Fatal(err)
			}
			i++
		}
		publish()
		allocs[rows] = testing.AllocsPerRun(50, publish)
	}
	t.Logf("allocations per publication by rows: %v", allocs)
	if allocs[1000] > allocs[10]+5 {
		t.Errorf("allocations grow with the document: %v", allocs)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, rows := range []int{4, 100, 5000} {
		bodies := make([][]byte, 64)
		for i := range bodies {
			bodies[i] = document(rows, i)
		}
		for _, feeds := range []int{0, 1, 4} {
			b.Run(fmt.Sprintf("%dKB/%dvariants", len(bodies[0])>>10, feeds), func(b *testing.B) {
				r, tearDown := setUp(b)
				defer tearDown()
				topic := snapshotTopic()
				variants := []router.Variant{{Event: "snapshot"}, {Event: "data"}, {Event: "snapshot", Compressed: true}, {Event: "snapshot", Mode: router.Snapshots}}
				for _, v := range variants[:feeds] {
					f, err := r.Subscribe(context.Background(), &topic, v)
					if err != nil {
						b.Fatal(err)
					}
					defer f.Close()
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := r.Publish(context.Background(), &topic, router.Publication{Body: bodies[i%len(bodies)]}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkFilters: what a publication of one item costs must not depend on how many filters there are, only on how many list it.
func BenchmarkFilters(b *testing.B) {
	for _, filters := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("%dfilters", filters), func(b *testing.B) {
			r, tearDown := setUp(b)
			defer tearDown()
			topic := itemTopic()
			var items []string
			for i := range 10_000 {
				items = append(items, fmt.Sprintf(`{"id":"i%d","v":0}`, i))
			}
			r.Publish(context.Background(), &topic, router.Publication{Body: []byte("[" + strings.Join(items, ",") + "]")})
			cursor := fanout.Cursor(0)
			for i := range filters {
				list := fmt.Sprintf("i%d", i)
				for k := range 9 {
					list += fmt.Sprintf(",i%d", (i*31+k*977)%10_000)
				}
				f, err := r.Subscribe(context.Background(), &topic, router.Variant{Event: "snapshot", Filter: router.ParseFilter(list)})
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				cursor = f.Begin("").Next
			}
			_ = cursor
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body := fmt.Appendf(nil, `[{"id":"i%d","v":%d}]`, i%10_000, i+1)
				if _, err := r.Publish(context.Background(), &topic, router.Publication{Body: body}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPatch: a short patch of a document, one that applies and one that is looked at twice because it does not.
func BenchmarkPatch(b *testing.B) {
	for _, rows := range []int{4, 100} {
		for name, bodies := range map[string][2]string{
			"merge":     {`{"name":"ab"}`, `{"name":"cd"}`},
			"patch":     {`[{"op":"replace","path":"/rows/0/price","value":1}]`, `[{"op":"replace","path":"/rows/0/price","value":2}]`},
			"conflict":  {`[{"op":"test","path":"/rows/0/id","value":-1}]`, `[{"op":"remove","path":"/nowhere"}]`},
			"malformed": {`[{"op":"test"`, `{"op":"test"}`},
		} {
			b.Run(fmt.Sprintf("%drows/%s", rows, name), func(b *testing.B) {
				r, tearDown := setUp(b)
				defer tearDown()
				topic := snapshotTopic()
				if _, err := r.Publish(context.Background(), &topic, router.Publication{Body: document(rows, 0)}); err != nil {
					b.Fatal(err)
				}
				form := router.JSONPatch
				if name == "merge" {
					form = router.MergePatch
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_, err := r.Publish(context.Background(), &topic, router.Publication{Body: []byte(bodies[i%2]), Form: form})
					if (err != nil) != (name == "conflict" || name == "malformed") {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
