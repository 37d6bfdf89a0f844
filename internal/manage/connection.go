package manage

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
)

// Connections are the open streams of all nodes. Every node's subscriber interface knows its own.
type Connections interface {
	Live(filter freshet.ConnectionFilter, offset, limit int64) (list []freshet.Connection, total int64)
	Connection(id string) (freshet.Connection, bool)
	Cut(id string) bool
	Refusals(topicID string) []freshet.Refusal
	Subscribers(topicID string) int64
}

// noConnections is a process without the subscriber interface.
type noConnections struct{}

func (noConnections) Live(freshet.ConnectionFilter, int64, int64) ([]freshet.Connection, int64) {
	return nil, 0
}

func (noConnections) Connection(string) (freshet.Connection, bool) {
	return freshet.Connection{}, false
}
func (noConnections) Cut(string) bool                   { return false }
func (noConnections) Refusals(string) []freshet.Refusal { return nil }
func (noConnections) Subscribers(string) int64          { return 0 }

type connection struct {
	ID        string    `json:"id" example:"5f0c2a19-1-77-1204"`
	Node      string    `json:"node" example:"5f0c2a19" doc:"The process that serves it"`
	User      string    `json:"user" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	App       string    `json:"app" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	Topic     string    `json:"topic" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	Since     time.Time `json:"since"`
	Remote    string    `json:"remote" example:"192.0.2.7:51034" doc:"Where it comes from; behind a proxy, the proxy"`
	Mode      string    `json:"mode" enum:"patch,snapshot"`
	Encoding  string    `json:"encoding" enum:"identity,compressed"`
	Transport string    `json:"transport" enum:"loop,goroutine" doc:"How it is served"`
	Filtered  bool      `json:"filtered" doc:"It gets some items only"`
	Bytes     int64     `json:"bytes" example:"48211" doc:"Sent to it"`
	Lag       int64     `json:"lag" example:"0" doc:"Versions it has not got yet"`
	Behind    bool      `json:"behind" doc:"It takes no bytes at present"`
}

func showConnection(c *freshet.Connection) connection {
	return connection{
		ID: c.ID, Node: c.Node, User: c.UserID, App: c.AppID, Topic: c.TopicID, Since: c.Since.UTC(), Remote: c.Remote, Mode: c.Mode,
		Encoding: c.Encoding, Transport: c.Transport, Filtered: c.Filtered, Bytes: int64(c.Bytes), Lag: int64(c.Lag), Behind: c.Behind,
	}
}

// ConnectionPath is where a connection is.
type ConnectionPath struct {
	ConnectionID string `path:"connection_id" example:"5f0c2a19-1-77-1204" doc:"Identifier of the connection"`
}

func (a *api) connections(h huma.API) {
	tags := []string{adminTag}
	handle(a, h, huma.Operation{
		OperationID: "admin-list-connections", Method: http.MethodGet, Path: "/admin/connections", Tags: tags, Security: signedIn,
		Summary: "See who is subscribed", Description: "Of all nodes: node by node, the oldest first.",
	}, a.listConnections)
	handle(a, h, huma.Operation{
		OperationID: "admin-cut-connection", Method: http.MethodDelete, Path: "/admin/connections/{connection_id}", Tags: tags, Security: signedIn,
		DefaultStatus: http.StatusNoContent, Summary: "Cut a connection",
		Description: "Its client is asked to stay away for 30 seconds. To keep it out, renew the key or disable the account.",
	}, func(ctx context.Context, in *ConnectionPath) (*struct{}, error) {
		return nil, a.Catalog.CutConnection(ctx, actor(ctx), in.ConnectionID, func() bool { return a.Connections.Cut(in.ConnectionID) })
	})
	handle(a, h, huma.Operation{
		OperationID: "admin-explain-connection", Method: http.MethodGet, Path: "/admin/connections/{connection_id}/explain", Tags: tags, Security: signedIn,
		Summary: "Why a connection gets nothing", Description: explainRules,
	}, a.explainConnection)
}

func (a *api) listConnections(ctx context.Context, in *struct {
	Paging
	App   string `query:"app" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Of this app only"`
	Topic string `query:"topic" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Of this topic only"`
	User  string `query:"user" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Of this user only"`
}) (*body[page[connection]], error) {
	if err := a.Catalog.MayAdminister(actor(ctx)); err != nil {
		return nil, err
	}
	var list catalog.Listing[freshet.Connection]
	rows := in.rows()
	list.Items, list.Total = a.Connections.Live(freshet.ConnectionFilter{UserID: in.User, AppID: in.App, TopicID: in.Topic}, rows.Offset, rows.Limit)
	filter := url.Values{}
	for name, value := range map[string]string{"app": in.App, "topic": in.Topic, "user": in.User} {
		if value != "" {
			filter.Set(name, value)
		}
	}
	return pageOf(list, in.Paging, "/admin/connections", filter, showConnection), nil
}
