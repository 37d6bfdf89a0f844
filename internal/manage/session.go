package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

type credentials struct {
	Email    string `json:"email" example:"ada@example.com" doc:"In any case"`
	Password string `json:"password" writeOnly:"true" example:"correct horse battery"`
}

type session struct {
	Token     string    `json:"token" example:"eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3ODU0MTI4MDB9.c2lnbmF0dXJl" doc:"Send it as Authorization: Bearer <token>"`
	ExpiresAt time.Time `json:"expires_at"`
	Links     []link    `json:"links" nullable:"false" doc:"self and user"`
}

const sessionTag = "Session"

func (a *api) sessions(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "sign-in", Method: http.MethodPut, Path: "/session", Tags: []string{sessionTag},
		Summary: "Get a token",
		Description: "The token ends with its time, with `DELETE /session`, with a new password and with a disabled account. " +
			"After several wrong passwords for an account from one address, or from an address for any accounts, the next attempt has to wait (429).",
		Errors: []int{http.StatusUnauthorized},
	}, a.signIn)
	handle(a, h, huma.Operation{
		OperationID: "sign-out", Method: http.MethodDelete, Path: "/session", Tags: []string{sessionTag}, Security: signedIn,
		DefaultStatus: http.StatusNoContent, Summary: "End the session this token belongs to",
	}, a.signOut)
	handle(a, h, huma.Operation{
		OperationID: "sign-out-everywhere", Method: http.MethodDelete, Path: "/sessions", Tags: []string{sessionTag}, Security: signedIn,
		DefaultStatus: http.StatusNoContent, Summary: "End every session of yours",
		Description: "Every token of the user stops working at once, this one included. Keys go on working.",
	}, a.signOutEverywhere)
}

func (a *api) signIn(ctx context.Context, in *struct{ Body credentials }) (*body[session], error) {
	token, err := a.Catalog.SignIn(ctx, in.Body.Email, in.Body.Password, addressOf(ctx))
	if err != nil {
		return nil, err
	}
	return &body[session]{Body: session{
		Token:     token.Text.Reveal(),
		ExpiresAt: token.ExpiresAt.UTC(),
		Links:     []link{linkTo("self", "/session"), linkTo("user", "/users/%s", token.UserID)},
	}}, nil
}

func (a *api) signOut(ctx context.Context, _ *struct{}) (*struct{}, error) {
	return nil, a.Catalog.SignOut(ctx, actor(ctx))
}

func (a *api) signOutEverywhere(ctx context.Context, _ *struct{}) (*struct{}, error) {
	return nil, a.Catalog.SignOutEverywhere(ctx, actor(ctx))
}
