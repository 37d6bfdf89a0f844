package gridtest

import (
	"context"
	"strings"
	"testing"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/grid"
)

var questionsContract = []clause[grid.Questions]{
	{name: "QuestionsAreAnswered", test: questionsAreAnswered},
}

func questionsAreAnswered(t *testing.T, g grid.Questions, p Pace) {
	if _, err := g.Ask(t.Context(), "twice", nil); freshet.KindOf(err) != freshet.Unavailable {
		t.Errorf("nobody answers: got %v", err)
	}
	if all := g.AskAll(t.Context(), "twice", nil); len(all) != 0 {
		t.Errorf("nobody answers: got %v", all)
	}
	stop := g.Answer("twice", func(_ context.Context, q []byte) ([]byte, error) {
		if len(q) == 0 {
			return nil, freshet.InvalidField("q", "is required")
		}
		return append(q[:len(q):len(q)], q...), nil
	})
	if got, err := g.Ask(t.Context(), "twice", []byte("ha")); err != nil || string(got) != "haha" {
		t.Errorf("got %s, %v", got, err)
	}
	if all := g.AskAll(t.Context(), "twice", []byte("ha")); len(all) != 1 || string(all[0].Data) != "haha" || all[0].Err != nil {
		t.Errorf("got %v", all)
	}
	if _, err := g.Ask(t.Context(), "twice", nil); freshet.KindOf(err) != freshet.Invalid || !strings.Contains(err.Error(), "q is required") {
		t.Errorf("got %v", err)
	}
	stop()
	if _, err := g.Ask(t.Context(), "twice", []byte("ha")); freshet.KindOf(err) != freshet.Unavailable {
		t.Errorf("nobody answers any more: got %v", err)
	}
}
