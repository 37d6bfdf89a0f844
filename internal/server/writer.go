package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/gateway"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/httpkit"
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
	askAdminister = "write-registration"
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
	administration := gateway.NewWriter(p.store, p.grid, p.version, p.log).Bar(p.barred())
	stops = append(stops, answerTo(p.grid, askAdminister, func(ctx context.Context, q registration) (registered, error) {
		return q.serve(ctx, administration), nil
	}))
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// registration is a request to the gateway's administration that another process makes, and registered its answer.
type (
	registration struct {
		Method, Target, ContentType string
		Body                        []byte
	}
	registered struct {
		Status int
		Header http.Header
		Body   []byte
	}
)

func (q *registration) serve(ctx context.Context, h http.Handler) registered {
	r, err := http.NewRequestWithContext(ctx, q.Method, q.Target, bytes.NewReader(q.Body))
	if err != nil {
		return registered{Status: http.StatusBadRequest}
	}
	r.Header.Set("Content-Type", q.ContentType)
	a := httpkit.NewAnswer()
	h.ServeHTTP(a, r)
	return registered{Status: a.Status, Header: a.Header(), Body: a.Body.Bytes()}
}

// remoteAdministration answers questions about what is registered, and has changes made by a process that may write.
type remoteAdministration struct {
	local  http.Handler
	writer writer
	log    *slog.Logger
}

// maxRegistration is more than any registration takes.
const maxRegistration = 256 << 10

// ServeHTTP implements http.Handler.
func (a *remoteAdministration) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		a.local.ServeHTTP(w, r)
		return
	}
	httpkit.Serve(a.log, a.forward).ServeHTTP(w, r)
}

func (a *remoteAdministration) forward(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	if err != nil {
		return freshet.Wrap(freshet.TooLarge, err, "The request is too large")
	}
	var answer registered
	q := registration{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), body}
	if err := a.writer.ask(r.Context(), askAdminister, q, &answer); err != nil {
		return err
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Status)
	_, err = w.Write(answer.Body)
	return err
}
