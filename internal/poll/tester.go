package poll

import (
	"context"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// Previewer knows what a document becomes when it is published.
type Previewer interface {
	Preview(topic *freshet.Topic, body []byte) ([]byte, error)
}

// maxTrials bounds the requests under way: each may hold a document, and people wait for them.
const maxTrials = 8

// Tester asks a target once, exactly as a Poller would, and publishes nothing. It has connections and tokens of its own, so that
// people who try things take nothing from topics that are polled. It is safe for concurrent use.
type Tester struct {
	// Static after NewTester.
	client    *client
	previewer Previewer
	places    chan struct{}
}

// NewTester returns a Tester that knows the limits of a Poller with the same options. Close it after use.
func NewTester(previewer Previewer, opts Options) *Tester {
	opts.fill()
	return &Tester{client: newClient(opts.client()), previewer: previewer, places: make(chan struct{}, maxTrials)}
}

// Close drops idle connections.
func (t *Tester) Close() { t.client.close() }

// Try asks the source once. A source that fails is no error: that is what the trial tells.
func (t *Tester) Try(ctx context.Context, source *catalog.Source) (*catalog.Trial, error) {
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	default:
		return nil, &freshet.Error{Kind: freshet.Unavailable, Msg: "Too many URLs are being tested right now; try again in a moment", RetryAfter: time.Second}
	}
	target, err := newTarget(&source.Topic, source.AllowedHosts)
	if err != nil {
		return nil, err
	}
	var trial catalog.Trial
	began := time.Now()
	got, err := t.client.fetch(ctx, &request{target: target, answered: func(status int) { trial.Status = status }})
	trial.Took = time.Since(began)
	if ctx.Err() != nil {
		return nil, ctx.Err() // whoever asked has gone
	}
	if err == nil {
		trial.Bytes = len(got.body)
		trial.Document, err = t.previewer.Preview(&source.Topic, got.body)
	}
	if err != nil {
		trial.Failure = shownFailure(err)
	}
	return &trial, nil
}

// shownFailure leaves out causes, which name addresses.
func shownFailure(err error) error {
	if e, ok := errors.AsType[*freshet.Error](err); ok {
		return freshet.Errorf(e.Kind, "%s", e.Msg)
	}
	return freshet.Errorf(freshet.SourceFailed, "The data source cannot be polled")
}
