// Package manage is the management API and the admin API: users, sessions, apps, topics and keys over REST, and
// what is registered at the gateway.
//
// It translates between JSON and the nouns, and nothing more: every rule is the catalog's or the registry's. Paths here are relative
// to the version prefix, so that one handler serves /api/v1 and /api/latest. The handler is safe for concurrent use.
package manage

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/openapi"
	"github.com/freshet-io/freshet/internal/registry"
)

// Documents gives the current document of a topic. A zero position means that nothing was published.
type Documents interface {
	Document(ctx context.Context, topic freshet.Topic) (body []byte, at freshet.Position, err error)
}

// Options are what the API needs from the rest of the program.
type Options struct {
	Catalog   *catalog.Catalog
	Documents Documents
	Counter   httpkit.Counter
	Usage     Usage
	Topics    Topics
	Sources   Sources
	Tester    Tester
	Health    Health
	Registry  *registry.Registry // of the gateway; nil where there is none

	Connections Connections // nil where there are none
	// RequestsPerMinute limits callers who are nobody yet, per address; 0 = unlimited. Users have quotas.
	RequestsPerMinute int64
	Now               func() time.Time // nil = the real clock
	Log               *slog.Logger
}

// BasePath is where clients find the API.
const BasePath = "/api/v1"

// latestPath is where they find it too.
const latestPath = "/api/latest"

// linkPrefix begins every href: links name the version, not the mount point.
const linkPrefix = "/v1"

type api struct{ Options }

// New returns the handler for everything below the version prefix.
func New(opts Options) (http.Handler, error) {
	mux := http.NewServeMux()
	if err := register(mux, opts); err != nil {
		return nil, err
	}
	return httpkit.Chain(httpkit.JSONMux(opts.Log, mux),
		httpkit.Finish, httpkit.CORS(), httpkit.Gzip(), httpkit.Recover(opts.Log)), nil
}

// register puts both APIs and their pages on mux.
func register(mux openapi.Mux, opts Options) error {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Connections == nil {
		opts.Connections = noConnections{}
	}
	a := &api{Options: opts}
	if err := openapi.Browse(mux, a.management(mux), "openapi", "api-browser"); err != nil {
		return err
	}
	return openapi.Browse(mux, a.admin(mux), "openapi-admin", "api-browser-admin")
}

// management registers the API of account owners and returns its description.
func (a *api) management(mux openapi.Mux) *huma.OpenAPI {
	h := openapi.New(mux, openapi.Info{
		Title: "Freshet management API",
		Description: "Manage your account, apps, topics and keys.\n\n" +
			"1. Create a user with `POST /users`.\n" +
			"2. Get a token with `PUT /session`.\n" +
			"3. Send it as `Authorization: Bearer <token>` with every other call; on this page, press *Authorize*.\n\n" +
			"What belongs to somebody else answers 404. Answers may get new members at any time: ignore those you do not know.",
		BasePaths: []string{BasePath, latestPath},
		Security:  bearer,
		Tags: []*huma.Tag{
			{Name: usersTag, Description: "The account that owns apps"},
			{Name: sessionTag, Description: "Tokens for this API"},
			{Name: appsTag, Description: "Apps group topics, which share the app's keys"},
			{Name: topicsTag, Description: "Documents that change over time, and where their content comes from"},
		},
	})
	a.users(h)
	a.sessions(h)
	a.apps(h)
	a.appKeys(h)
	a.topics(h)
	a.usage(h)
	a.explains(h)
	return openapi.Describe(h)
}

// admin registers the API of admins and returns its description.
func (a *api) admin(mux openapi.Mux) *huma.OpenAPI {
	h := openapi.New(mux, openapi.Info{
		Title: "Freshet admin API",
		Description: "See and change every account. Only for users with the role `admin`; to everybody else these paths do not exist.\n\n" +
			"An admin may also use every operation of the management API on other people's users, apps and topics; that is recorded.",
		BasePaths: []string{BasePath, latestPath},
		Security:  bearer,
		Tags: []*huma.Tag{
			{Name: adminTag, Description: "Accounts, and what admins did to them"},
			{Name: gatewayTag, Description: "APIs that the gateway forwards, what runs before them, and who may call them"},
		},
	})
	a.administration(h)
	a.connections(h)
	a.adminUsage(h)
	a.adminTopUsage(h)
	a.health(h)
	a.gateway(h)
	return openapi.Describe(h)
}

var bearer = map[string]*huma.SecurityScheme{
	"token": {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "The `token` that `PUT /session` answers"},
}

// signedIn marks the operations that need a token.
var signedIn = []map[string][]string{{"token": {}}}
