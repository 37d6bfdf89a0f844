package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/gateway"
	"github.com/freshet-io/freshet/internal/grid"
	"github.com/freshet-io/freshet/internal/kong"
	"github.com/freshet-io/freshet/internal/registry"
)

// The questions about what is registered at the gateway, which only a process with the role manage may change.
const (
	askAPI        = "write-gateway-api"
	askPlugin     = "write-gateway-plugin"
	askConsumer   = "write-gateway-consumer"
	askCredential = "write-gateway-credential"
)

// maxRegistration is more than any registration takes.
const maxRegistration = 256 << 10

// registered is what became of a change that another process asked for: the thing as it is now, or why it is not.
type registered[T any] struct {
	Now   *T              `json:"now,omitempty"`
	Error *registry.Error `json:"error,omitempty"`
}

// credential is a freshet.Credential that shows its key to the process that asked for it.
type credential struct {
	ID, ConsumerID, Key string
	CreatedAt           time.Time
}

func revealed(c *freshet.Credential) *credential {
	if c == nil {
		return nil
	}
	return &credential{c.ID, c.ConsumerID, c.Key.Reveal(), c.CreatedAt}
}

func (c *credential) hidden() *freshet.Credential {
	if c == nil {
		return nil
	}
	return &freshet.Credential{ID: c.ID, ConsumerID: c.ConsumerID, Key: freshet.Key(c.Key), CreatedAt: c.CreatedAt}
}

// askToRegister has another process make a change.
func askToRegister[T any](ctx context.Context, w writer, name string, change any) (*T, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	if len(text) > maxRegistration {
		return nil, freshet.Errorf(freshet.TooLarge, "The request is too large")
	}
	var outcome registered[T]
	if err := w.ask(ctx, name, json.RawMessage(text), &outcome); err != nil {
		return nil, err
	}
	if outcome.Error != nil {
		return nil, outcome.Error
	}
	return outcome.Now, nil
}

// WriteAPI implements registry.Writer.
func (w writer) WriteAPI(ctx context.Context, change registry.APIWrite) (*freshet.API, error) {
	return askToRegister[freshet.API](ctx, w, askAPI, change)
}

// WritePlugin implements registry.Writer.
func (w writer) WritePlugin(ctx context.Context, change registry.PluginWrite) (*freshet.Plugin, error) {
	return askToRegister[freshet.Plugin](ctx, w, askPlugin, change)
}

// WriteConsumer implements registry.Writer.
func (w writer) WriteConsumer(ctx context.Context, change registry.ConsumerWrite) (*freshet.Consumer, error) {
	return askToRegister[freshet.Consumer](ctx, w, askConsumer, change)
}

// WriteCredential implements registry.Writer.
func (w writer) WriteCredential(ctx context.Context, change registry.CredentialWrite) (*freshet.Credential, error) {
	now, err := askToRegister[credential](ctx, w, askCredential, change)
	return now.hidden(), err
}

// answerRegistrations makes changes for the others.
func answerRegistrations(nodes grid.Questions, r registry.Writer) (stops []func()) {
	return []func(){
		answerTo(nodes, askAPI, func(ctx context.Context, change registry.APIWrite) (registered[freshet.API], error) {
			return outcome(r.WriteAPI(ctx, change))
		}),
		answerTo(nodes, askPlugin, func(ctx context.Context, change registry.PluginWrite) (registered[freshet.Plugin], error) {
			return outcome(r.WritePlugin(ctx, change))
		}),
		answerTo(nodes, askConsumer, func(ctx context.Context, change registry.ConsumerWrite) (registered[freshet.Consumer], error) {
			return outcome(r.WriteConsumer(ctx, change))
		}),
		answerTo(nodes, askCredential, func(ctx context.Context, change registry.CredentialWrite) (registered[credential], error) {
			now, err := r.WriteCredential(ctx, change)
			return outcome(revealed(now), err)
		}),
	}
}

// outcome keeps apart what a rule says, which is told in full, and what went wrong otherwise.
func outcome[T any](now *T, err error) (registered[T], error) {
	if e, ok := errors.AsType[*registry.Error](err); ok {
		return registered[T]{Error: e}, nil
	}
	return registered[T]{Now: now}, err
}

// gatewayNode tells the administration about the gateway of this process.
type gatewayNode struct {
	*gateway.Follower
	gateway *gateway.Gateway
}

// Traffic implements kong.Node.
func (n gatewayNode) Traffic() kong.Traffic {
	t := n.gateway.Traffic()
	return kong.Traffic{
		Accepted: t.Accepted, Handled: t.Accepted, Active: t.Active, Writing: t.Writing, Waiting: t.Waiting, Requests: t.Requests,
	}
}
