package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// gatewayPath is where admins find the gateway's administration, which has its own paths below it.
const gatewayPath = "/admin/gateway"

// gatewayOperation is one thing that admins can do to the gateway. Writes are acts that go on record.
type gatewayOperation struct {
	method, path, id, summary string
	act                       string // empty for reads
	body                      []example
}

var gatewayOperations = []gatewayOperation{
	{"GET", "/apis", "list-apis", "List registered APIs", "", nil},
	{"POST", "/apis", "create-api", "Register an API", "gateway.create_api", []example{
		{"By path", map[string]any{"name": "quotes", "request_path": "/quotes", "upstream_url": "http://127.0.0.1:9000", "strip_request_path": true}},
	}},
	{"GET", "/apis/{api}", "get-api", "Read an API", "", nil},
	{"PATCH", "/apis/{api}", "update-api", "Change an API", "gateway.update_api", []example{
		{"Another upstream", map[string]any{"upstream_url": "http://127.0.0.1:9001"}},
	}},
	{"DELETE", "/apis/{api}", "delete-api", "Delete an API with its plugins", "gateway.delete_api", nil},
	{"GET", "/apis/{api}/plugins", "list-api-plugins", "List the plugins of an API", "", nil},
	{"POST", "/apis/{api}/plugins", "create-plugin", "Add a plugin to an API", "gateway.create_plugin", []example{
		{"A rate limit", map[string]any{"name": "rate-limiting", "config": map[string]any{"minute": 60}}},
		{"Keys", map[string]any{"name": "key-auth"}},
	}},
	{"GET", "/plugins", "list-plugins", "List the plugins of all APIs", "", nil},
	{"GET", "/plugins/{plugin}", "get-plugin", "Read a plugin", "", nil},
	{"PATCH", "/plugins/{plugin}", "update-plugin", "Change a plugin, or switch it", "gateway.update_plugin", []example{
		{"Switch it off", map[string]any{"enabled": false}},
	}},
	{"DELETE", "/plugins/{plugin}", "delete-plugin", "Remove a plugin", "gateway.delete_plugin", nil},
	{"GET", "/consumers", "list-consumers", "List consumers", "", nil},
	{"POST", "/consumers", "create-consumer", "Create a consumer", "gateway.create_consumer", []example{
		{"By name", map[string]any{"username": "mobile"}},
	}},
	{"GET", "/consumers/{consumer}", "get-consumer", "Read a consumer", "", nil},
	{"PATCH", "/consumers/{consumer}", "update-consumer", "Change a consumer", "gateway.update_consumer", []example{
		{"Another name", map[string]any{"username": "tablet"}},
	}},
	{"DELETE", "/consumers/{consumer}", "delete-consumer", "Delete a consumer with its keys", "gateway.delete_consumer", nil},
	{"GET", "/consumers/{consumer}/key-auth", "list-keys", "List the keys of a consumer", "", nil},
	{"POST", "/consumers/{consumer}/key-auth", "create-key", "Give a consumer a key", "gateway.create_key", []example{
		{"A random one", map[string]any{}},
	}},
	{"DELETE", "/consumers/{consumer}/key-auth/{key}", "delete-key", "Take a key away", "gateway.delete_key", nil},
}

const gatewayRules = "As the gateway's administration listener answers it, except for errors and the address of the next page. 404 where the process has no gateway."

// GatewayCall is a request to the gateway's administration.
type GatewayCall struct {
	url url.URL
}

// Resolve keeps the address: its path is the administration's, below ours.
func (c *GatewayCall) Resolve(ctx huma.Context) []error {
	c.url = ctx.URL()
	return nil
}

type gatewayAnswer struct {
	Status      int
	ContentType string `header:"Content-Type" hidden:"true"`
	Body        []byte
}

func (a *api) gateway(h huma.API) {
	for _, g := range gatewayOperations {
		op := g.describe()
		if g.method == http.MethodDelete {
			handle(a, h, op, func(ctx context.Context, in *GatewayCall) (*struct{}, error) {
				_, err := a.askGateway(ctx, g, &in.url, nil)
				return nil, err
			})
			continue
		}
		if g.body == nil {
			handle(a, h, op, func(ctx context.Context, in *GatewayCall) (*gatewayAnswer, error) {
				return a.askGateway(ctx, g, &in.url, nil)
			})
			continue
		}
		handle(a, h, op, func(ctx context.Context, in *struct {
			GatewayCall
			Body map[string]any
		}) (*gatewayAnswer, error) {
			return a.askGateway(ctx, g, &in.url, in.Body)
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

// askGateway passes the request on. What changes something goes on record.
func (a *api) askGateway(ctx context.Context, g gatewayOperation, u *url.URL, body map[string]any) (*gatewayAnswer, error) {
	if err := a.Catalog.MayAdminister(actor(ctx)); err != nil {
		return nil, err
	}
	if a.Gateway == nil {
		return nil, freshet.Errorf(freshet.NotFound, "The process that answers has no gateway")
	}
	if g.act == "" {
		return a.passOn(ctx, g.method, u, nil)
	}
	var out *gatewayAnswer
	err := a.Catalog.Administer(ctx, actor(ctx), g.act, func() (subject string, err error) {
		out, err = a.passOn(ctx, g.method, u, body)
		return subjectOf(out, u), err
	})
	return out, err
}

// subjectOf is the identifier of what was changed; what is gone has only the name it was called by.
func subjectOf(out *gatewayAnswer, u *url.URL) string {
	var made struct {
		ID string `json:"id"`
	}
	if out != nil && json.Unmarshal(out.Body, &made) == nil && made.ID != "" {
		return made.ID
	}
	return u.Path[strings.LastIndexByte(u.Path, '/')+1:]
}

func (a *api) passOn(ctx context.Context, method string, u *url.URL, body map[string]any) (*gatewayAnswer, error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(text)
	}
	to := strings.TrimPrefix(u.EscapedPath(), gatewayPath)
	if u.RawQuery != "" {
		to += "?" + u.RawQuery
	}
	r, err := http.NewRequestWithContext(ctx, method, to, sent)
	if err != nil {
		return nil, freshet.Wrap(freshet.NotFound, err, "There is nothing at this path")
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	got := httpkit.NewAnswer()
	a.Gateway.ServeHTTP(got, r)
	text := got.Body.Bytes()
	switch {
	case got.Status >= http.StatusBadRequest:
		return nil, gatewayError(got.Status, text)
	case len(text) == 0:
		return &gatewayAnswer{Status: got.Status}, nil
	}
	return &gatewayAnswer{Status: got.Status, ContentType: "application/json", Body: withOwnNext(text)}, nil
}

// withOwnNext makes the address of the next page one of ours.
func withOwnNext(text []byte) []byte {
	var members map[string]json.RawMessage
	var next string
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(members["next"], &next) != nil {
		return text
	}
	u, err := url.Parse(next)
	if err != nil {
		return text
	}
	own := url.URL{Path: linkPrefix + gatewayPath + u.Path, RawQuery: u.RawQuery}
	members["next"], err = json.Marshal(own.String())
	if err != nil {
		return text
	}
	rewritten, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return rewritten
}

var gatewayKinds = map[int]freshet.Kind{
	http.StatusBadRequest: freshet.Invalid, http.StatusNotFound: freshet.NotFound, http.StatusMethodNotAllowed: freshet.MethodNotAllowed,
	http.StatusConflict: freshet.Conflict, http.StatusRequestEntityTooLarge: freshet.TooLarge, http.StatusServiceUnavailable: freshet.Unavailable,
}

// gatewayError is a refusal in our words: the administration has a message, or one or several for each field at fault.
func gatewayError(status int, text []byte) error {
	kind, known := gatewayKinds[status]
	if !known {
		return freshet.Errorf(freshet.Internal, "the gateway's administration answered %d", status)
	}
	var members map[string]any
	_ = json.Unmarshal(text, &members) // without members, the kind has to do
	e := freshet.Errorf(kind, "The gateway does not accept this")
	for _, field := range slices.Sorted(maps.Keys(members)) {
		for _, m := range texts(members[field]) {
			if field == "message" {
				e.Msg = m
				continue
			}
			e.Fields = append(e.Fields, freshet.FieldError{Field: field, Message: strings.TrimPrefix(m, field+" ")})
		}
	}
	return e
}

// texts are the texts of a member that may hold one or several.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, m := range v {
			all = append(all, texts(m)...)
		}
	}
	return all
}
