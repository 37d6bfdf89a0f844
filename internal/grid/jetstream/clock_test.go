package jetstream_test

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
)

func TestADocumentOfANodeWhoseClockIsWrongIsThereForOthers(t *testing.T) {
	t.Parallel()
	const ttl = time.Hour
	opts := jetstream.Options{Prefix: jetstream.NewPrefix(), MessageTTL: ttl}
	right := open(t, opts)
	s, err := jetstream.Server()
	if err != nil {
		t.Fatal(err)
	}
	opts.InProcess = s
	for name, skew := range map[string]time.Duration{"behind": -2 * ttl, "ahead": 2 * ttl} {
		wrong, err := jetstream.OpenWithClock(t.Context(), opts, func() time.Time { return time.Now().Add(skew) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { wrong.Close() })
		if off := wrong.Now().Sub(right.Now()).Abs(); off > ttl/2 {
			t.Errorf("%s: by their own account the nodes are %v apart", name, off)
		}
		for from, to := range map[*jetstream.Grid]*jetstream.Grid{wrong: right, right: wrong} {
			topic := freshet.NewID()
			pos, err := from.Put(t.Context(), topic, freshet.Position{}, grid.Document{Content: grid.Raw("{}"), At: from.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if doc, err := to.Document(t.Context(), topic); err != nil || doc.Position != pos {
				t.Errorf("%s: the other node has %v, not %v: %v", name, doc.Position, pos, err)
			}
		}
	}
}
