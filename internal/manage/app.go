package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
)

// AppSettings are what an app may have beside its name, at creation and later. null is the default.
type AppSettings struct {
	AutoProvisioningAllowed       optional[bool]          `json:"auto_provisioning_allowed,omitempty" nullable:"true" example:"false" doc:"Whether any holder of the subscriber key may create a topic by subscribing to a URL; by default false"`
	ClientRequestSignatureEnabled optional[bool]          `json:"client_request_signature_enabled,omitempty" nullable:"true" example:"false" doc:"Whether subscribers must sign their requests; by default false"`
	DefaultConfigurations         optional[givenDefaults] `json:"default_configurations,omitempty" nullable:"true" doc:"What topics of the app take where they set nothing themselves"`
	AllowedTargetHosts            optional[[]string]      `json:"allowed_target_hosts,omitempty" nullable:"true" doc:"The only hosts that pollers of the app may reach, such as api.example.com or *.example.com; by default all"`
}

type givenDefaults struct {
	Poller optional[givenPollerDefaults] `json:"http-poller,omitempty" nullable:"true"`
	Post   optional[givenPostDefaults]   `json:"http-post,omitempty" nullable:"true"`
}

type givenPollerDefaults struct {
	PollingFrequency optional[int64] `json:"polling_frequency,omitempty" nullable:"true" example:"2000" doc:"Milliseconds between two polls, 100 at least; by default 2000"`
}

type givenPostDefaults struct {
	ForcePublishing optional[bool] `json:"force_publishing,omitempty" nullable:"true" example:"true" doc:"Publish even when nobody is subscribed; by default true"`
}

func (s *AppSettings) apply(app *freshet.App) {
	s.AutoProvisioningAllowed.replace(&app.AutoProvisioningAllowed)
	s.ClientRequestSignatureEnabled.replace(&app.SignatureRequired)
	s.AllowedTargetHosts.replace(&app.AllowedTargetHosts)
	d := s.DefaultConfigurations
	if d.Null || d.Value.Poller.Null {
		app.Defaults.PollEvery = nil
	} else if every := d.Value.Poller.Value.PollingFrequency; every.Set {
		app.Defaults.PollEvery = milliseconds(every.pointer())
	}
	if d.Null || d.Value.Post.Null {
		app.Defaults.ForcePublishing = nil
	} else if force := d.Value.Post.Value.ForcePublishing; force.Set {
		app.Defaults.ForcePublishing = force.pointer()
	}
}

// milliseconds converts without overflow: what is out of range stays so, and is refused by the noun.
func milliseconds(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	const bound = int64(2 * freshet.MaxPollEvery / time.Millisecond)
	d := time.Duration(max(-bound, min(*n, bound))) * time.Millisecond
	return &d
}

type newApp struct {
	Name string `json:"name" example:"Quotes" doc:"Unique among your apps"`
	AppSettings
}

func (n *newApp) app() freshet.App {
	app := freshet.App{Name: n.Name}
	n.apply(&app)
	return app
}

type appPatch struct {
	Name optional[string] `json:"name,omitempty" example:"Quotes" doc:"Unique among your apps"`
	AppSettings
}

func (p *appPatch) change(app *freshet.App) {
	p.Name.replace(&app.Name)
	p.apply(app)
}

type appDefaults struct {
	Poller pollerDefaults `json:"http-poller"`
	Post   postDefaults   `json:"http-post"`
}

type pollerDefaults struct {
	PollingFrequency int64 `json:"polling_frequency" example:"2000" doc:"Milliseconds between two polls"`
}

type postDefaults struct {
	ForcePublishing bool `json:"force_publishing" example:"true" doc:"Publish even when nobody is subscribed"`
}

type app struct {
	ID                            string      `json:"id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	Name                          string      `json:"name" example:"Quotes"`
	AutoProvisioningAllowed       bool        `json:"auto_provisioning_allowed" example:"false"`
	ClientRequestSignatureEnabled bool        `json:"client_request_signature_enabled" example:"false"`
	DefaultConfigurations         appDefaults `json:"default_configurations" doc:"What topics of the app take where they set nothing themselves"`
	AllowedTargetHosts            []string    `json:"allowed_target_hosts" nullable:"false" doc:"The only hosts that its pollers may reach; empty: all"`
	Quotas                        quotas      `json:"quotas" doc:"The limits in force, beside those of the account; admins set them"`
	SubscriberKey                 string      `json:"subscriber_key" example:"pXq3R0aTzWv8LkYb1NfCgH5sJd7MuEi2Oo9PxQeVtBnGrKwZ" doc:"Opens the topics of the app to subscribers"`
	PublisherKey                  string      `json:"publisher_key" example:"Zw4KrGnBtVeQxP9oO2iEuM7dJs5HgCfN1bYkL8vWzTa0R3qX" doc:"Lets its holder publish to topics of the app"`
	SignatureKey                  string      `json:"signature_key" doc:"Signs subscribers' requests: base64 of a beacon and a secret, 36 characters each"`
	CreatedAt                     time.Time   `json:"created_at"`
	UpdatedAt                     time.Time   `json:"updated_at"`
	Links                         []link      `json:"links" nullable:"false" doc:"self, topics and user"`
}

func showApp(f *freshet.App) app {
	return app{
		ID:                            f.ID,
		Name:                          f.Name,
		AutoProvisioningAllowed:       f.AutoProvisioningAllowed,
		ClientRequestSignatureEnabled: f.SignatureRequired,
		DefaultConfigurations: appDefaults{
			Poller: pollerDefaults{PollingFrequency: f.Defaults.EffectivePollEvery().Milliseconds()},
			Post:   postDefaults{ForcePublishing: f.Defaults.EffectiveForcePublishing()},
		},
		AllowedTargetHosts: append([]string{}, f.AllowedTargetHosts...),
		Quotas:             quotas(f.Quotas),

		SubscriberKey: f.SubscriberKey.Reveal(),
		PublisherKey:  f.PublisherKey.Reveal(),
		SignatureKey:  f.SignatureKey.Reveal(),
		CreatedAt:     f.CreatedAt.UTC(),
		UpdatedAt:     f.UpdatedAt.UTC(),
		Links: []link{
			linkTo("self", "/apps/%s", f.ID),
			linkTo("topics", "/apps/%s/topics", f.ID),
			linkTo("user", "/users/%s", f.UserID),
		},
	}
}

// AppPath is where an app is.
type AppPath struct {
	AppID string `path:"app_id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Identifier of the app"`
}

const appsTag = "Apps"

// How a PATCH reads its body.
const patchRules = "Members that are left out stay as they are; null goes back to the default."

func (a *api) apps(h huma.API) {
	tags := []string{appsTag}
	polling := func(value any) map[string]any {
		return map[string]any{"http-poller": map[string]any{"polling_frequency": value}}
	}
	handle(a, h, huma.Operation{
		OperationID: "create-app", Method: http.MethodPost, Path: "/apps", Tags: tags, Security: signedIn,
		DefaultStatus: http.StatusCreated, Summary: "Create an app", Description: "It comes with fresh keys.",
		Errors: []int{http.StatusConflict},
		RequestBody: bodyExamples(
			example{"Just a name", map[string]any{"name": "Quotes"}},
			example{"With settings", map[string]any{
				"name": "Weather", "auto_provisioning_allowed": true, "default_configurations": polling(5000),
			}},
		),
	}, a.createApp)
	handle(a, h, huma.Operation{
		OperationID: "list-apps", Method: http.MethodGet, Path: "/apps", Tags: tags, Security: signedIn,
		Summary: "List your apps",
	}, a.listApps)
	handle(a, h, huma.Operation{
		OperationID: "get-app", Method: http.MethodGet, Path: "/apps/{app_id}", Tags: tags, Security: signedIn,
		Summary: "Read an app",
	}, a.getApp)
	handle(a, h, huma.Operation{
		OperationID: "update-app", Method: http.MethodPatch, Path: "/apps/{app_id}", Tags: tags, Security: signedIn,
		Summary: "Change an app", Description: patchRules, Errors: []int{http.StatusConflict},
		RequestBody: bodyExamples(
			example{"Another default", map[string]any{"default_configurations": polling(500)}},
			example{"Back to the default", map[string]any{"default_configurations": polling(nil)}},
		),
	}, a.updateApp)
	handle(a, h, huma.Operation{
		OperationID: "delete-app", Method: http.MethodDelete, Path: "/apps/{app_id}", Tags: tags, Security: signedIn,
		DefaultStatus: http.StatusNoContent, Summary: "Delete an app with its topics and keys",
		Description: "Streams of its topics end.",
	}, a.deleteApp)
}

func (a *api) createApp(ctx context.Context, in *struct{ Body newApp }) (*created[app], error) {
	made, err := a.Catalog.CreateApp(ctx, actor(ctx), in.Body.app())
	if err != nil {
		return nil, err
	}
	return &created[app]{Location: BasePath + "/apps/" + made.ID, Body: showApp(made)}, nil
}

func (a *api) listApps(ctx context.Context, in *Paging) (*body[page[app]], error) {
	who := actor(ctx)
	list, err := a.Catalog.Apps(ctx, who, who.User.ID, in.rows())
	if err != nil {
		return nil, err
	}
	return pageOf(list, *in, "/apps", nil, showApp), nil
}

func (a *api) getApp(ctx context.Context, in *AppPath) (*body[app], error) {
	found, err := a.Catalog.App(ctx, actor(ctx), in.AppID)
	if err != nil {
		return nil, err
	}
	return &body[app]{Body: showApp(found)}, nil
}

func (a *api) updateApp(ctx context.Context, in *struct {
	AppPath
	Body appPatch
}) (*body[app], error) {
	changed, err := a.Catalog.UpdateApp(ctx, actor(ctx), in.AppID, in.Body.change)
	if err != nil {
		return nil, err
	}
	return &body[app]{Body: showApp(changed)}, nil
}

func (a *api) deleteApp(ctx context.Context, in *AppPath) (*struct{}, error) {
	return nil, a.Catalog.DeleteApp(ctx, actor(ctx), in.AppID)
}
