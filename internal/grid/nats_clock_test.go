package grid_test

import (
	"testing"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

func TestADocumentOfANodeWhoseClockIsWrongIsThereForOthers(t *testing.T) {
	t.Parallel()
	const ttl = time.Hour
	opts := grid.NATSOptions{Prefix: newPrefix(), MessageTTL: ttl}
	right := openNATS(t, opts)
	s, err := server()
	if err != nil {
		t.Fatal(err)
	}
	opts.InProcess = s
	for name, skew := range map[string]time.Duration{"behind": -2 * ttl, "ahead": 2 * ttl} {
		wrong, err := grid.OpenWithClock(t.Context(), opts, func() time.Time { return time.Now().Add(skew) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { wrong.Close() })
		if off := wrong.Now().Sub(right.Now()).Abs(); off > ttl/2 {
			t.Errorf("%s: by their own account the nodes are %v apart", name, off)
		}
		for from, to := range map[*grid.NATS]*grid.NATS{wrong: right, right: wrong} {
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
