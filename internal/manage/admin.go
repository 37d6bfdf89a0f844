package manage

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

type quotasPatch struct {
	Connections       optional[int64] `json:"connections,omitempty" minimum:"0" nullable:"true" example:"100" doc:"Concurrent subscriber connections; 0 = unlimited, null = the server's default"`
	MessagesPerMonth  optional[int64] `json:"messages_per_month,omitempty" minimum:"0" nullable:"true" example:"1000000" doc:"Messages delivered in a calendar month; 0 = unlimited, null = the server's default"`
	RequestsPerMinute optional[int64] `json:"requests_per_minute,omitempty" minimum:"0" nullable:"true" example:"6000" doc:"Of a user: calls to the management API; of an app: publications; 0 = unlimited, null = the server's default"`
	Topics            optional[int64] `json:"topics,omitempty" minimum:"0" nullable:"true" example:"500" doc:"Topics, those that subscribers made by naming URLs included; 0 = unlimited, null = the server's default"`
	DocumentBytes     optional[int64] `json:"document_bytes,omitempty" minimum:"0" nullable:"true" example:"100000000" doc:"Bytes of the newest documents together, as compact JSON; 0 = unlimited, null = the server's default"`
}

type accountPatch struct {
	Status optional[string]      `json:"status,omitempty" enum:"active,disabled" doc:"Disabling an account ends its tokens and streams"`
	Quotas optional[quotasPatch] `json:"quotas,omitempty" nullable:"true" doc:"null = the server's defaults"`
}

func (p *accountPatch) change() catalog.AccountChange {
	c := catalog.AccountChange{Quotas: quotasChange(p.Quotas)}
	if p.Status.Set {
		status := freshet.Status(p.Status.Value)
		c.Status = &status
	}
	return c
}

// appQuotasPatch is what an admin may change about an app that its owner may not.
type appQuotasPatch struct {
	Quotas optional[quotasPatch] `json:"quotas,omitempty" nullable:"true" doc:"null = the server's defaults"`
}

func quotasChange(p optional[quotasPatch]) catalog.QuotasChange {
	quota := func(o optional[int64]) *int64 {
		if o.Null || p.Null {
			return new(int64(freshet.ServersQuota))
		}
		return o.change()
	}
	q := p.Value
	return catalog.QuotasChange{
		Connections: quota(q.Connections), MessagesPerMonth: quota(q.MessagesPerMonth), RequestsPerMinute: quota(q.RequestsPerMinute),
		Topics: quota(q.Topics), DocumentBytes: quota(q.DocumentBytes),
	}
}

type auditEntry struct {
	ID      string    `json:"id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"The admin's user id"`
	Action  string    `json:"action" example:"user.administer" doc:"What was done"`
	Subject string    `json:"subject" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"The id of what it was done to"`

	Detail json.RawMessage `json:"detail,omitempty" doc:"What was changed to what, where the act says so; -1 is the server's default"`
}

func showAudit(e *catalog.AuditEntry) auditEntry {
	return auditEntry{ID: e.ID, At: e.At.UTC(), Actor: e.ActorID, Action: e.Action, Subject: e.Subject, Detail: json.RawMessage(e.Detail)}
}

const adminTag = "Admin"

const loweredQuotas = "A quota of topics or document_bytes below what there is deletes nothing; there can only not be more."

func (a *api) administration(h huma.API) {
	tags := []string{adminTag}
	handle(a, h, huma.Operation{
		OperationID: "admin-list-users", Method: http.MethodGet, Path: "/admin/users", Tags: tags, Security: signedIn,
		Summary: "Find users", Description: "Those whose e-mail or name contains the query, in any case; all without one.",
	}, a.findUsers)
	handle(a, h, huma.Operation{
		OperationID: "admin-update-user", Method: http.MethodPatch, Path: "/admin/users/{user_id}", Tags: tags, Security: signedIn,
		Summary:     "Enable or disable a user, set quotas",
		Description: "Members that are left out stay as they are. An admin cannot disable its own account (409). " + loweredQuotas,
		Errors:      []int{http.StatusConflict},
		RequestBody: bodyExamples(
			example{"Set a quota", map[string]any{"quotas": map[string]any{"connections": 100}}},
			example{"Disable", map[string]any{"status": "disabled"}},
			example{"Enable", map[string]any{"status": "active"}},
		),
	}, a.updateAccount)
	handle(a, h, huma.Operation{
		OperationID: "admin-update-app", Method: http.MethodPatch, Path: "/admin/apps/{app_id}", Tags: tags, Security: signedIn,
		Summary:     "Set the quotas of an app",
		Description: "They apply beside those of its account. Members that are left out stay as they are. " + loweredQuotas,
		RequestBody: bodyExamples(
			example{"Set a quota", map[string]any{"quotas": map[string]any{"messages_per_month": 1_000_000}}},
			example{"Back to the server's defaults", map[string]any{"quotas": nil}},
		),
	}, a.updateAppQuotas)
	handle(a, h, huma.Operation{
		OperationID: "admin-audit", Method: http.MethodGet, Path: "/admin/audit", Tags: tags, Security: signedIn,
		Summary: "See what admins did to other people's things, newest first",
	}, a.listAudit)
}

func (a *api) findUsers(ctx context.Context, in *struct {
	Paging
	Query string `query:"query" example:"ada" doc:"A part of an e-mail or a name"`
}) (*body[page[user]], error) {
	list, err := a.Catalog.Users(ctx, actor(ctx), in.Query, in.rows())
	if err != nil {
		return nil, err
	}
	filter := url.Values{}
	if in.Query != "" {
		filter.Set("query", in.Query)
	}
	return pageOf(list, in.Paging, "/admin/users", filter, showUser), nil
}

func (a *api) updateAccount(ctx context.Context, in *struct {
	UserPath
	Body accountPatch
}) (*body[user], error) {
	u, err := a.Catalog.UpdateAccount(ctx, actor(ctx), in.UserID, in.Body.change())
	if err != nil {
		return nil, err
	}
	return &body[user]{Body: showUser(u)}, nil
}

func (a *api) updateAppQuotas(ctx context.Context, in *struct {
	AppPath
	Body appQuotasPatch
}) (*body[app], error) {
	changed, err := a.Catalog.UpdateAppQuotas(ctx, actor(ctx), in.AppID, quotasChange(in.Body.Quotas))
	if err != nil {
		return nil, err
	}
	return &body[app]{Body: showApp(changed)}, nil
}

func (a *api) listAudit(ctx context.Context, in *Paging) (*body[page[auditEntry]], error) {
	list, err := a.Catalog.Audit(ctx, actor(ctx), in.rows())
	if err != nil {
		return nil, err
	}
	return pageOf(list, *in, "/admin/audit", nil, showAudit), nil
}
