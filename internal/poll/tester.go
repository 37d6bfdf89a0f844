package poll

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// Previewer knows what a document becomes when it is published.
type Previewer interface {
	Preview(topic *freshet.Topic, body []byte) ([]byte, error)
}

// Requests under way are bounded: each may hold a document, and people wait for them. One account has few of them, or a target that
// drips would keep everybody else from trying theirs.
const (
	maxTrials        = 16
	trialsPerAccount = 2
)

// Tester asks a target once, exactly as a Poller would, and publishes nothing. It has connections and tokens of its own, so that
// people who try things take nothing from topics that are polled. It is safe for concurrent use.
type Tester struct {
	// Static after NewTester.
	client    *client
	previewer Previewer

	// Guarded by mu.
	mu     sync.Mutex
	trials map[string]int // under way, by account
}

// NewTester returns a Tester that knows the limits of a Poller with the same options. Close it after use.
func NewTester(previewer Previewer, opts Options) *Tester {
	opts.fill()
	return &Tester{client: newClient(opts.client()), previewer: previewer, trials: map[string]int{}}
}

// Close drops idle connections.
func (t *Tester) Close() { t.client.close() }

// Try asks the source once. A source that fails is no error: that is what the trial tells.
func (t *Tester) Try(ctx context.Context, source *catalog.Source) (*catalog.Trial, error) {
	if err := t.begin(source.UserID); err != nil {
		return nil, err
	}
	defer t.end(source.UserID)
	endpoint, err := newEndpoint(&source.Topic, source.AllowedHosts)
	if err != nil {
		return nil, err
	}
	var trial catalog.Trial
	began := time.Now()
	got, err := t.client.fetch(ctx, &request{endpoint: endpoint, responded: func(status int) { trial.Status = status }})
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

// begin takes a place of the account's, or says that there is none.
func (t *Tester) begin(account string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := 0
	for _, n := range t.trials {
		all += n
	}
	if t.trials[account] >= trialsPerAccount || all >= maxTrials {
		e := freshet.Errorf(freshet.TooManyRequests, "Too many URLs are being tested right now; try again in a moment")
		e.RetryAfter = time.Second
		return e
	}
	t.trials[account]++
	return nil
}

func (t *Tester) end(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trials[account]--; t.trials[account] == 0 {
		delete(t.trials, account)
	}
}

// shownFailure leaves out causes, which name addresses.
func shownFailure(err error) error {
	if e, ok := errors.AsType[*freshet.Error](err); ok {
		return freshet.Errorf(e.Kind, "%s", e.Msg)
	}
	return freshet.Errorf(freshet.SourceFailed, "The data source cannot be polled")
}
