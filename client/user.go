package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// User is an account.
type User struct {
	ID        string    `json:"id"`
	Email     string    `json:"email"`
	FirstName string    `json:"first_name"`
	LastName  string    `json:"last_name"`
	Language  string    `json:"language"`
	Role      string    `json:"role"`   // user or admin
	Status    string    `json:"status"` // active or disabled
	Quotas    Quotas    `json:"quotas"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Quotas limit an account or an app; 0 is unlimited.
type Quotas struct {
	Connections       int64 `json:"connections"`
	MessagesPerMonth  int64 `json:"messages_per_month"`
	RequestsPerMinute int64 `json:"requests_per_minute"`
	Topics            int64 `json:"topics"`
	DocumentBytes     int64 `json:"document_bytes"` // of the newest documents together
}

// NewUser is what signing up takes. Language is a locale like en_GB.
type NewUser struct {
	Email     string `json:"email"`
	Password  string `json:"password"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Language  string `json:"language"`
}

// UserChange changes what is set in it. A new password ends every token of the user. Who changes the own e-mail or password
// gives the current password too.
type UserChange struct {
	Email           Value[string] `json:"email,omitzero"`
	Password        Value[string] `json:"password,omitzero"`
	CurrentPassword Value[string] `json:"current_password,omitzero"`
	FirstName       Value[string] `json:"first_name,omitzero"`
	LastName        Value[string] `json:"last_name,omitzero"`
	Language        Value[string] `json:"language,omitzero"`
}

// CreateUser signs somebody up.
func (c *Client) CreateUser(ctx context.Context, u NewUser) (*User, error) {
	return ask[User](ctx, c, http.MethodPost, "/users", u)
}

// User reads an account: one's own, or anybody's for an admin.
func (c *Client) User(ctx context.Context, id string) (*User, error) {
	return ask[User](ctx, c, http.MethodGet, "/users/"+escape(id), nil)
}

// UpdateUser changes an account.
func (c *Client) UpdateUser(ctx context.Context, id string, change UserChange) (*User, error) {
	return ask[User](ctx, c, http.MethodPatch, "/users/"+escape(id), change)
}

// DeleteUser deletes an account with all its apps and topics.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	return c.manage(ctx, http.MethodDelete, "/users/"+escape(id), nil, nil)
}

// UserApps lists the apps of an account.
func (c *Client) UserApps(ctx context.Context, id string) iter.Seq2[App, error] {
	return list[App](ctx, c, "/users/"+escape(id)+"/apps")
}

// Session is a right to use the management API for a while.
type Session struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
	Links     []Link    `json:"links"`
}

// UserID is whose session it is.
func (s *Session) UserID() string {
	for _, l := range s.Links {
		if l.Rel == "user" {
			return l.Href[strings.LastIndexByte(l.Href, '/')+1:]
		}
	}
	return ""
}

// SignIn gets a session, and uses its token for the calls that follow. It is not repeated by itself: wrong passwords are
// counted.
func (c *Client) SignIn(ctx context.Context, email, password string) (*Session, error) {
	s := &Session{}
	k := &call{method: http.MethodPut, url: c.base + "/api/v1/session", at: c.base, anonymous: true}
	in := map[string]string{"email": email, "password": password}
	if err := c.exchange(ctx, k, in, s); err != nil {
		return nil, err
	}
	if s.Token == "" {
		return nil, errors.New("client: " + c.base + " does not answer as Freshet does: no token")
	}
	c.SetToken(s.Token)
	return s, nil
}

// SignOut ends the session that the token belongs to.
func (c *Client) SignOut(ctx context.Context) error {
	if err := c.manage(ctx, http.MethodDelete, "/session", nil, nil); err != nil {
		return err
	}
	c.SetToken("")
	return nil
}

// AccountChange is what an admin may change about others.
type AccountChange struct {
	Status Value[string]       `json:"status,omitzero"` // active or disabled
	Quotas Value[QuotasChange] `json:"quotas,omitzero"`
}

// QuotasChange sets limits: 0 is unlimited, Reset the server's default.
type QuotasChange struct {
	Connections       Value[int64] `json:"connections,omitzero"`
	MessagesPerMonth  Value[int64] `json:"messages_per_month,omitzero"`
	RequestsPerMinute Value[int64] `json:"requests_per_minute,omitzero"`
	Topics            Value[int64] `json:"topics,omitzero"`
	DocumentBytes     Value[int64] `json:"document_bytes,omitzero"`
}

// SetAppQuotas limits an app, for an admin.
func (c *Client) SetAppQuotas(ctx context.Context, id string, quotas Value[QuotasChange]) (*App, error) {
	return ask[App](ctx, c, http.MethodPatch, "/admin/apps/"+url.PathEscape(id), map[string]any{"quotas": quotas})
}

// FindUsers lists the accounts whose e-mail or name contains query, for an admin; all of them if it is empty.
func (c *Client) FindUsers(ctx context.Context, query string) iter.Seq2[User, error] {
	path := "/admin/users"
	if query != "" {
		path += "?query=" + url.QueryEscape(query)
	}
	return list[User](ctx, c, path)
}

// UpdateAccount enables or disables an account and sets its quotas, for an admin.
func (c *Client) UpdateAccount(ctx context.Context, id string, change AccountChange) (*User, error) {
	return ask[User](ctx, c, http.MethodPatch, "/admin/users/"+escape(id), change)
}

// AuditEntry is something that an admin did to others' things.
type AuditEntry struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"`
}

// Audit lists what admins did, newest first, for an admin.
func (c *Client) Audit(ctx context.Context) iter.Seq2[AuditEntry, error] {
	return list[AuditEntry](ctx, c, "/admin/audit")
}
