package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

type newUser struct {
	Email     string `json:"email" example:"ada@example.com" doc:"Unique, in any case"`
	Password  string `json:"password" writeOnly:"true" example:"correct horse battery" doc:"At least 8 characters"`
	FirstName string `json:"first_name" example:"Ada"`
	LastName  string `json:"last_name" example:"Lovelace"`
	Language  string `json:"language" example:"en_GB" doc:"A locale like fr_FR"`
}

type userPatch struct {
	Email     optional[string] `json:"email,omitempty" example:"ada@example.com" doc:"Unique, in any case"`
	Password  optional[string] `json:"password,omitempty" writeOnly:"true" example:"battery horse correct" doc:"A new password ends every token of the user"`
	Current   optional[string] `json:"current_password,omitempty" writeOnly:"true" example:"correct horse battery" doc:"The password until now; required to change your own e-mail or password"`
	FirstName optional[string] `json:"first_name,omitempty" example:"Augusta Ada"`
	LastName  optional[string] `json:"last_name,omitempty" example:"King"`
	Language  optional[string] `json:"language,omitempty" example:"fr_FR" doc:"A locale like fr_FR"`
}

func (p *userPatch) change() catalog.UserChange {
	return catalog.UserChange{
		Email:           p.Email.change(),
		Password:        p.Password.change(),
		CurrentPassword: p.Current.change(),
		FirstName:       p.FirstName.change(),
		LastName:        p.LastName.change(),
		Language:        p.Language.change(),
	}
}

type quotas struct {
	Connections       int64 `json:"connections" example:"0" doc:"Concurrent subscriber connections; 0 = unlimited"`
	MessagesPerMonth  int64 `json:"messages_per_month" example:"0" doc:"Messages delivered in a calendar month; 0 = unlimited"`
	RequestsPerMinute int64 `json:"requests_per_minute" example:"6000" doc:"Of a user: calls to this API; of an app: publications; 0 = unlimited"`
	Topics            int64 `json:"topics" example:"0" doc:"Topics, those that subscribers made by naming URLs included; 0 = unlimited"`
	DocumentBytes     int64 `json:"document_bytes" example:"0" doc:"Bytes of the newest documents together, as compact JSON; 0 = unlimited"`
}

type user struct {
	ID        string    `json:"id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	Email     string    `json:"email" example:"ada@example.com"`
	FirstName string    `json:"first_name" example:"Ada"`
	LastName  string    `json:"last_name" example:"Lovelace"`
	Language  string    `json:"language" example:"en_GB"`
	Role      string    `json:"role" enum:"user,admin"`
	Status    string    `json:"status" enum:"active,disabled"`
	Quotas    quotas    `json:"quotas" doc:"The limits in force"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Links     []link    `json:"links" nullable:"false" doc:"self and apps"`
}

func showUser(u *freshet.User) user {
	return user{
		ID:        u.ID,
		Email:     u.Email,
		FirstName: u.FirstName,
		LastName:  u.LastName,
		Language:  u.Language,
		Role:      string(u.Role),
		Status:    string(u.Status),
		Quotas:    quotas(u.Quotas),
		CreatedAt: u.CreatedAt.UTC(),
		UpdatedAt: u.UpdatedAt.UTC(),
		Links:     []link{linkTo("self", "/users/%s", u.ID), linkTo("apps", "/users/%s/apps", u.ID)},
	}
}

// UserPath is where a user is.
type UserPath struct {
	UserID string `path:"user_id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Identifier of the user"`
}

const usersTag = "Users"

func (a *api) users(h huma.API) {
	tags := []string{usersTag}
	handle(a, h, huma.Operation{
		OperationID: "create-user", Method: http.MethodPost, Path: "/users", Tags: tags, DefaultStatus: http.StatusCreated,
		Summary: "Create a user", Description: "Open to everybody unless the server is set to `signup: admin`. One address may make a few an hour (429), admins any number.",
		Errors: []int{http.StatusConflict, http.StatusUnauthorized},
	}, a.createUser)
	handle(a, h, huma.Operation{
		OperationID: "get-user", Method: http.MethodGet, Path: "/users/{user_id}", Tags: tags, Security: signedIn,
		Summary: "Read a user", Description: "Yourself, or anybody for an admin.",
	}, a.getUser)
	handle(a, h, huma.Operation{
		OperationID: "update-user", Method: http.MethodPatch, Path: "/users/{user_id}", Tags: tags, Security: signedIn,
		Summary: "Change a user",
		Description: "Members that are left out stay as they are. Whoever changes the own e-mail or password sends `current_password` along; " +
			"a wrong one answers 403 and counts like a failed sign-in. Admins need none for others.",
		Errors:      []int{http.StatusConflict, http.StatusForbidden},
		RequestBody: bodyExamples(example{"Another name", map[string]any{"first_name": "Augusta Ada", "last_name": "King"}}),
	}, a.updateUser)
	handle(a, h, huma.Operation{
		OperationID: "delete-user", Method: http.MethodDelete, Path: "/users/{user_id}", Tags: tags, Security: signedIn,
		DefaultStatus: http.StatusNoContent, Summary: "Delete a user with all apps and topics",
		Description: "Streams of the topics end. An admin cannot delete its own account (409).",
		Errors:      []int{http.StatusConflict},
	}, a.deleteUser)
	handle(a, h, huma.Operation{
		OperationID: "list-user-apps", Method: http.MethodGet, Path: "/users/{user_id}/apps", Tags: tags, Security: signedIn,
		Summary: "List the apps of a user",
	}, a.listUserApps)
}

func (a *api) createUser(ctx context.Context, in *struct{ Body newUser }) (*created[user], error) {
	b := in.Body
	u, err := a.Catalog.SignUp(ctx, actor(ctx), freshet.User{
		Email: b.Email, FirstName: b.FirstName, LastName: b.LastName, Language: b.Language,
	}, b.Password, addressOf(ctx))
	if err != nil {
		return nil, err
	}
	return &created[user]{Location: BasePath + "/users/" + u.ID, Body: showUser(u)}, nil
}

func (a *api) getUser(ctx context.Context, in *UserPath) (*body[user], error) {
	u, err := a.Catalog.User(ctx, actor(ctx), in.UserID)
	if err != nil {
		return nil, err
	}
	return &body[user]{Body: showUser(u)}, nil
}

func (a *api) updateUser(ctx context.Context, in *struct {
	UserPath
	Body userPatch
}) (*body[user], error) {
	change := in.Body.change()
	change.Network = addressOf(ctx)
	u, err := a.Catalog.UpdateUser(ctx, actor(ctx), in.UserID, change)
	if err != nil {
		return nil, err
	}
	return &body[user]{Body: showUser(u)}, nil
}

func (a *api) deleteUser(ctx context.Context, in *UserPath) (*struct{}, error) {
	return nil, a.Catalog.DeleteUser(ctx, actor(ctx), in.UserID)
}

func (a *api) listUserApps(ctx context.Context, in *struct {
	UserPath
	Paging
}) (*body[page[app]], error) {
	list, err := a.Catalog.Apps(ctx, actor(ctx), in.UserID, in.rows())
	if err != nil {
		return nil, err
	}
	return pageOf(list, in.Paging, "/users/"+in.UserID+"/apps", nil, showApp), nil
}
