package jetstream_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/grid/gridtest"
	"github.com/freshet-io/freshet/internal/grid/jetstream"
)

func TestNodesAskEachOther(t *testing.T) {
	t.Parallel()
	n := nodes(t, 3, jetstream.Options{})
	for i, node := range n[:2] {
		node.Answer("who", func(_ context.Context, q []byte) ([]byte, error) {
			if string(q) == "fail" {
				return nil, freshet.Errorf(freshet.Conflict, "no %d", i)
			}
			return fmt.Append(q[:len(q):len(q)], i), nil
		})
	}
	got, err := n[2].Ask(t.Context(), "who", []byte(strings.Repeat("x", 4000)))
	if err != nil || len(got) != 4001 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if _, err := n[2].Ask(t.Context(), "who", []byte("fail")); freshet.KindOf(err) != freshet.Conflict || !strings.HasPrefix(err.Error(), "no ") {
		t.Errorf("got %v", err)
	}
	said := func(node *jetstream.Grid) string {
		var words []string
		for _, a := range node.AskAll(t.Context(), "who", []byte("node ")) {
			word := string(a.Data)
			if a.Err != nil {
				word = "silence"
			}
			words = append(words, word)
		}
		if len(words) == 2 && words[0] > words[1] {
			words[0], words[1] = words[1], words[0] // their names decide
		}
		return strings.Join(words, ", ")
	}
	for _, node := range n {
		gridtest.Eventually(t, func() bool { return said(node) == "node 0, node 1" })
	}
	n[1].Close()
	gridtest.Eventually(t, func() bool { return said(n[2]) == "node 0" })
	jetstream.Die(n[0])
	gridtest.Eventually(t, func() bool { return said(n[2]) == "" })
}

func TestANoticeIsEverywhereWhenNotifyReturns(t *testing.T) {
	t.Parallel()
	n := nodes(t, 3, jetstream.Options{})
	var heard [3]atomic.Int64
	for i, node := range n {
		defer node.OnNotice(func(grid.Notice) { heard[i].Add(1) })()
	}
	jetstream.DeafenRepeats(n[2])
	for i := range int64(50) {
		if err := n[i%2].Notify(t.Context(), grid.Notice{Scope: grid.ScopeApp, ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		for node := range heard {
			if got := heard[node].Load(); got != i+1 {
				t.Fatalf("node %d heard %d notices of %d", node, got, i+1)
			}
		}
	}
}

func TestARefreshTellsWatchesWhatOthersPut(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2, jetstream.Options{})
	there := gridtest.Watch(t, n[1], "a")
	jetstream.Deafen(n[1], "a")
	var pos freshet.Position
	for i := range 20 {
		pos = gridtest.Put(t, n[0], "a", pos, fmt.Sprint(i))
		if err := n[1].Refresh(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if got := there.Last(); got.Position != pos || gridtest.Body(got) != fmt.Sprint(i) {
			t.Fatalf("after a refresh the watch has %s at %v, not %d at %v", gridtest.Body(got), got.Position, i, pos)
		}
	}
	if err := n[0].Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := n[1].Refresh(t.Context(), "a"); err != nil || !there.Last().Position.IsZero() {
		t.Errorf("after a deletion the watch has %v, %v", there.Last().Position, err)
	}
}

// TestWhoIsSubscribedIsSeenAtOnce: a publication that needs a subscriber may come right after the first one.
func TestWhoIsSubscribedIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2, jetstream.Options{})
	for i := range 50 {
		topic := fmt.Sprint("topic-", i)
		leave, err := n[0].Join(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		if here, err := n[1].Present(t.Context(), topic); err != nil || !here {
			t.Fatalf("%s: present %v, %v", topic, here, err)
		}
		leave()
	}
}
