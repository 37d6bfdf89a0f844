package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/registry"
)

// gatewayPath is where admins find what is registered at the gateway.
const gatewayPath = "/admin/gateway"

// gatewayOperation is one thing that admins can do to what is registered. Writes are acts that go on record.
type gatewayOperation struct {
	method, path, id, summary string
	act                       string // empty for reads
	body                      []example
	do                        func(r *registry.Registry, c *GatewayCall) (*registered, error)
}

var gatewayOperations = []gatewayOperation{
	{"GET", "/apis", "list-apis", "List registered APIs", "", nil, listAPIs},
	{"POST", "/apis", "create-api", "Register an API", "gateway.create_api", []example{
		{"By path", map[string]any{"name": "quotes", "request_path": "/quotes", "upstream_url": "http://127.0.0.1:9000", "strip_request_path": true}},
	}, createAPI},
	{"GET", "/apis/{api}", "get-api", "Read an API", "", nil, getAPI},
	{"PATCH", "/apis/{api}", "update-api", "Change an API", "gateway.update_api", []example{
		{"Another upstream", map[string]any{"upstream_url": "http://127.0.0.1:9001"}},
	}, updateAPI},
	{"DELETE", "/apis/{api}", "delete-api", "Delete an API with its plugins", "gateway.delete_api", nil, deleteAPI},
	{"GET", "/apis/{api}/plugins", "list-api-plugins", "List the plugins of an API", "", nil, listPlugins},
	{"POST", "/apis/{api}/plugins", "create-plugin", "Add a plugin to an API", "gateway.create_plugin", []example{
		{"A rate limit", map[string]any{"name": "rate-limiting", "config": map[string]any{"minute": 60}}},
		{"Keys", map[string]any{"name": "key-auth"}},
	}, createPlugin},
	{"GET", "/plugins", "list-plugins", "List the plugins of all APIs", "", nil, listPlugins},
	{"GET", "/plugins/{plugin}", "get-plugin", "Read a plugin", "", nil, getPlugin},
	{"PATCH", "/plugins/{plugin}", "update-plugin", "Change a plugin, or switch it", "gateway.update_plugin", []example{
		{"Switch it off", map[string]any{"enabled": false}},
	}, updatePlugin},
	{"DELETE", "/plugins/{plugin}", "delete-plugin", "Remove a plugin", "gateway.delete_plugin", nil, deletePlugin},
	{"GET", "/consumers", "list-consumers", "List consumers", "", nil, listConsumers},
	{"POST", "/consumers", "create-consumer", "Create a consumer", "gateway.create_consumer", []example{
		{"By name", map[string]any{"username": "mobile"}},
	}, createConsumer},
	{"GET", "/consumers/{consumer}", "get-consumer", "Read a consumer", "", nil, getConsumer},
	{"PATCH", "/consumers/{consumer}", "update-consumer", "Change a consumer", "gateway.update_consumer", []example{
		{"Another name", map[string]any{"username": "tablet"}},
	}, updateConsumer},
	{"DELETE", "/consumers/{consumer}", "delete-consumer", "Delete a consumer with its keys", "gateway.delete_consumer", nil, deleteConsumer},
	{"GET", "/consumers/{consumer}/key-auth", "list-keys", "List the keys of a consumer", "", nil, listKeys},
	{"POST", "/consumers/{consumer}/key-auth", "create-key", "Give a consumer a key", "gateway.create_key", []example{
		{"A random one", map[string]any{}},
	}, createKey},
	{"DELETE", "/consumers/{consumer}/key-auth/{key}", "delete-key", "Take a key away", "gateway.delete_key", nil, deleteKey},
}

const gatewayRules = "As the gateway's administration listener answers it, except for errors and the address of the next page. 404 where the process has no gateway."

// GatewayCall is a request about what is registered: what it names and says.
type GatewayCall struct {
	ctx                        context.Context
	url                        url.URL
	api, plugin, consumer, key string // what the path names
	values                     registry.Values
}

// Resolve keeps what the path and the query say.
func (c *GatewayCall) Resolve(ctx huma.Context) []error {
	c.url = ctx.URL()
	c.api, c.plugin, c.consumer, c.key = ctx.Param("api"), ctx.Param("plugin"), ctx.Param("consumer"), ctx.Param("key")
	return nil
}

// registered is something that is registered, ready to be shown.
type registered struct {
	id   string // empty for lists, and for what is gone
	body any
}

type gatewayBody struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Body        []byte
}

func (a *api) gateway(h huma.API) {
	for _, g := range gatewayOperations {
		op := g.describe()
		if g.method == http.MethodDelete {
			handle(a, h, op, func(ctx context.Context, in *GatewayCall) (*struct{}, error) {
				_, err := a.administerGateway(ctx, &g, in, nil)
				return nil, err
			})
			continue
		}
		if g.body == nil {
			handle(a, h, op, func(ctx context.Context, in *GatewayCall) (*gatewayBody, error) {
				return a.administerGateway(ctx, &g, in, nil)
			})
			continue
		}
		handle(a, h, op, func(ctx context.Context, in *struct {
			GatewayCall
			Body map[string]any
		}) (*gatewayBody, error) {
			return a.administerGateway(ctx, &g, &in.GatewayCall, in.Body)
		})
	}
}

func (g *gatewayOperation) describe() huma.Operation {
	status := map[string]int{http.MethodPost: http.StatusCreated, http.MethodDelete: http.StatusNoContent}[g.method]
	op := huma.Operation{
		OperationID: "gateway-" + g.id, Method: g.method, Path: gatewayPath + g.path, Tags: []string{gatewayTag}, Security: signedIn,
		DefaultStatus: status, Summary: g.summary, Description: gatewayRules,
	}
	if g.method != http.MethodDelete {
		op.Responses = map[string]*huma.Response{strconv.Itoa(max(status, http.StatusOK)): {
			Description: "As the administration shows it",
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
			}},
		}}
	}
	if g.act != "" {
		op.Errors = append(op.Errors, http.StatusConflict, http.StatusMethodNotAllowed)
	}
	if g.body != nil {
		op.RequestBody = bodyExamples(g.body...)
	}
	for part := range strings.SplitSeq(g.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			op.Parameters = append(op.Parameters, &huma.Param{
				Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Description: "Its identifier or name",
				Schema: &huma.Schema{Type: huma.TypeString}, Example: "quotes",
			})
		}
	}
	if g.method == http.MethodGet && !strings.HasSuffix(g.path, "}") {
		for name, doc := range map[string]string{"size": "How many at most; 100 by default, 1000 at most", "offset": "Where the page begins, as next says"} {
			op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}})
		}
		slices.SortFunc(op.Parameters, func(x, y *huma.Param) int { return strings.Compare(x.Name, y.Name) })
	}
	return op
}

const gatewayTag = "Gateway"

// administerGateway has an admin's request done. What changes something goes on record.
func (a *api) administerGateway(ctx context.Context, g *gatewayOperation, c *GatewayCall, body map[string]any) (*gatewayBody, error) {
	if err := a.Catalog.MayAdminister(actor(ctx)); err != nil {
		return nil, err
	}
	if a.Registry == nil {
		return nil, freshet.Errorf(freshet.NotFound, "The process that answers has no gateway")
	}
	if err := c.read(body); err != nil {
		return nil, err
	}
	c.ctx = ctx
	if g.act == "" {
		out, err := g.do(a.Registry, c)
		if err != nil {
			return nil, err
		}
		return out.encode()
	}
	var out *registered
	err := a.Catalog.Administer(ctx, actor(ctx), g.act, func() (subject string, err error) {
		if out, err = g.do(a.Registry, c); err != nil {
			return "", err
		}
		return c.subject(out), nil
	})
	if err != nil {
		return nil, err
	}
	return out.encode()
}

// read puts together what the query and the body say. What the body says wins.
func (c *GatewayCall) read(body map[string]any) error {
	query, err := url.ParseQuery(c.url.RawQuery)
	if err != nil {
		return freshet.Wrap(freshet.Invalid, err, "Cannot parse the query")
	}
	c.values = registry.Values{}
	c.values.AddForm(query)
	c.values.AddObject(body)
	return c.values.Check()
}

// subject is the identifier of what was changed; what is gone has only the name it was called by.
func (c *GatewayCall) subject(out *registered) string {
	if out.id != "" {
		return out.id
	}
	return c.url.Path[strings.LastIndexByte(c.url.Path, '/')+1:]
}

func (r *registered) encode() (*gatewayBody, error) {
	if r.body == nil {
		return nil, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r.body); err != nil {
		return nil, err
	}
	return &gatewayBody{ContentType: "application/json", Body: text.Bytes()}, nil
}
