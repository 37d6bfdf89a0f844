package server

import (
	"context"
	"encoding/json"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/store"
	"github.com/freshet-io/freshet/internal/usage"
)

// Only processes with the role manage write to a database that several share. The others ask one of them for the little that
// has to be written without a management call: topics that subscribers name by their URL, what was used, and what is
// registered at the gateway.

// The questions.
const (
	askUsage      = "write-usage"
	askProvision  = "write-topic"
	askBuiltInApp = "write-built-in-app"
	askRetire     = "write-retired"
)

// writer has others write.
type writer struct{ nodes grid.Questions }

func (w writer) ask(ctx context.Context, name string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	said, err := w.nodes.Ask(ctx, name, text)
	if err != nil {
		if freshet.KindOf(err) == freshet.Unavailable {
			return freshet.Wrap(freshet.Unavailable, err, "This has to be written by a process with the role manage, and none answers; please try again")
		}
		return err
	}
	return json.Unmarshal(said, answer)
}

// done is the answer to what needs none.
type done struct{}

func (w writer) addUsage(ctx context.Context, b *store.UsageBatch) error {
	return w.ask(ctx, askUsage, b, &done{})
}

// Provision implements catalog.Writer.
func (w writer) Provision(ctx context.Context, p catalog.Provision) error {
	return w.ask(ctx, askProvision, p, &done{})
}

// MakeBuiltInApp implements catalog.Writer.
func (w writer) MakeBuiltInApp(ctx context.Context) error {
	return w.ask(ctx, askBuiltInApp, done{}, &done{})
}

// Retire implements catalog.Writer.
func (w writer) Retire(ctx context.Context, topicID string) error {
	return w.ask(ctx, askRetire, topicID, &done{})
}

// answerWriters writes for the others.
func (p *parts) answerWriters() (stop func()) {
	stops := []func(){
		answerTo(p.grid, askUsage, func(ctx context.Context, b *store.UsageBatch) (done, error) {
			return done{}, usage.AddUsage(ctx, p.store, b)
		}),
		answerTo(p.grid, askProvision, func(ctx context.Context, q catalog.Provision) (done, error) {
			return done{}, p.catalog.Provide(ctx, q)
		}),
		answerTo(p.grid, askBuiltInApp, func(ctx context.Context, _ done) (done, error) {
			return done{}, p.catalog.MakeBuiltInApp(ctx)
		}),
		answerTo(p.grid, askRetire, func(ctx context.Context, topicID string) (done, error) {
			return done{}, p.catalog.Retire(ctx, topicID, func(ctx context.Context) (bool, error) { return p.grid.Present(ctx, topicID) })
		}),
	}
	stops = append(stops, answerRegistrations(p.grid, p.registry)...)
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}
