package manage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/router"
	"github.com/freshet-io/freshet/internal/usage"
)

// Topics knows what became of publications. The router does.
type Topics interface {
	Lately(topicID string) router.Lately
}

// Sources tells what is wrong with data sources. The grid does.
type Sources interface {
	Value(ctx context.Context, name string) (string, error)
}

type reason struct {
	Code    string     `json:"code" example:"identical" doc:"For programs; new ones may come"`
	Message string     `json:"message" example:"The last 3 publications said what was known" doc:"For people"`
	Since   *time.Time `json:"since,omitempty" doc:"When it began, or last happened"`
	Count   int64      `json:"count,omitempty" example:"3" doc:"How often it happened, as far as the nodes know"`
}

type explanation struct {
	Topic       string      `json:"topic" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77"`
	Version     string      `json:"version,omitempty" example:"k3j2h1-42" doc:"Of the newest document"`
	Published   *time.Time  `json:"published,omitempty" doc:"When the newest document was published"`
	Subscribers int64       `json:"subscribers" example:"8" doc:"How many follow the topic now, on all nodes"`
	Connection  *connection `json:"connection,omitempty"`
	Reasons     []reason    `json:"reasons" nullable:"false" doc:"Why nothing is or was sent, the weightiest first; empty: everything is as it should be"`
}

const explainRules = "Reasons why subscribers get nothing, as far as the nodes know: what happened before one had to do with the topic, it does not."

func (a *api) explains(h huma.API) {
	handle(a, h, huma.Operation{
		OperationID: "explain-topic", Method: http.MethodGet, Path: "/topics/{topic_id}/explain", Tags: []string{topicsTag}, Security: signedIn,
		Summary: "Why a topic sends nothing", Description: explainRules,
	}, func(ctx context.Context, in *TopicPath) (*body[explanation], error) {
		out, err := a.explain(ctx, in.TopicID)
		if err != nil {
			return nil, err
		}
		return &body[explanation]{Body: *out}, nil
	})
}

func (a *api) explainConnection(ctx context.Context, in *ConnectionPath) (*body[explanation], error) {
	if err := a.Catalog.MayAdminister(actor(ctx)); err != nil {
		return nil, err
	}
	c, ok := a.Connections.Connection(in.ConnectionID)
	if !ok {
		return nil, freshet.Errorf(freshet.NotFound, "There is no such connection")
	}
	out, err := a.explain(ctx, c.TopicID)
	if err != nil {
		return nil, err
	}
	shown := showConnection(&c)
	out.Connection = &shown
	more := []reason{}
	if c.Behind {
		more = append(more, reason{Code: "behind", Message: "The subscriber takes no bytes at present; it is cut unless it begins to"})
	}
	if c.Lag > 0 {
		more = append(more, reason{Code: "lagging", Message: fmt.Sprintf("The subscriber lags by %d versions; one event will bring it up to date", c.Lag), Count: int64(c.Lag)})
	}
	if c.Filtered {
		more = append(more, reason{Code: "filtered", Message: "The subscriber asked for some items only; changes of others are not sent to it"})
	}
	out.Reasons = append(more, out.Reasons...)
	return &body[explanation]{Body: *out}, nil
}

func (a *api) explain(ctx context.Context, topicID string) (*explanation, error) {
	access, err := a.Catalog.Access(ctx, actor(ctx), topicID)
	if err != nil {
		return nil, err
	}
	lately := a.Topics.Lately(topicID)
	out := &explanation{Topic: topicID, Subscribers: a.Connections.Subscribers(topicID), Reasons: []reason{}}
	if !lately.Position.IsZero() {
		out.Version, out.Published = lately.Position.String(), moment(lately.At)
	}
	out.Reasons = append(out.Reasons, a.accountReasons(access)...)
	failure, err := a.sourceFailure(ctx, access)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		out.Reasons = append(out.Reasons, reason{Code: "source_failing", Message: "The data source fails: " + failure.Msg, Since: moment(failure.Since)})
	}
	out.Reasons = append(out.Reasons, publicationReasons(access, &lately)...)
	for _, r := range a.Connections.Refusals(topicID) {
		out.Reasons = append(out.Reasons, reason{
			Code: "subscribers_refused", Message: fmt.Sprintf("Subscribers were refused, or their streams ended, with %d: %s", r.Code, r.Message), Since: moment(r.Last), Count: int64(r.Count),
		})
	}
	return out, nil
}

func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

func (a *api) accountReasons(access *catalog.Access) []reason {
	var all []reason
	if access.Status != freshet.StatusActive {
		all = append(all, reason{Code: "account_disabled", Message: "The account is disabled"})
	}
	if n := access.Quotas.MessagesPerMonth; n > 0 && a.Usage.IsSpent(usage.User(access.UserID)) {
		all = append(all, reason{Code: "messages_used_up", Message: fmt.Sprintf("The account's %d messages of this month are used up", n)})
	}
	if n := access.AppQuotas.MessagesPerMonth; n > 0 && a.Usage.IsSpent(usage.App(access.Topic.AppID, access.UserID)) {
		all = append(all, reason{Code: "messages_used_up", Message: fmt.Sprintf("The app's %d messages of this month are used up", n)})
	}
	return all
}

func (a *api) sourceFailure(ctx context.Context, access *catalog.Access) (*freshet.SourceFailure, error) {
	if access.Topic.Publisher.Type != freshet.HTTPPoller {
		return nil, nil
	}
	text, err := a.Sources.Value(ctx, freshet.SourceValue(access.Topic.ID))
	if err != nil {
		return nil, err
	}
	failure, _ := freshet.ParseSourceFailure(text)
	return failure, nil
}

// publicationReasons is what the publications themselves explain.
func publicationReasons(access *catalog.Access, l *router.Lately) []reason {
	var all []reason
	add := func(code, message string, at time.Time, count uint64) {
		all = append(all, reason{Code: code, Message: message, Since: moment(at), Count: int64(count)})
	}
	polled := access.Topic.Publisher.Type == freshet.HTTPPoller
	switch {
	case !l.Followed:
		add("unknown", "No node has had to do with the topic lately: nobody published or subscribed", time.Time{}, 0)
	case !l.Position.IsZero():
	case !l.Vanished.IsZero():
		add("expired", "The document expired or was deleted; the next publication brings another", l.Vanished, 0)
	case polled:
		add("nothing_published", "The data source gave no document yet; it is asked while somebody is subscribed", time.Time{}, 0)
	default:
		add("nothing_published", "Nothing was published yet", time.Time{}, 0)
	}
	if r := l.Identical; r.Count > 0 {
		message := "The last publications said what was known; identical content is not sent"
		if p := access.Topic.Publisher.Payload; p.Type == freshet.PayloadItem {
			message = "The last publications said what was known, or their items had no identifier at " + p.ItemIDPath.String() + "; neither is sent"
		}
		add("identical", message, r.Last, r.Count)
	}
	if r := l.Dropped; r.Count > 0 {
		add("dropped", "Publications were dropped because nobody was subscribed; force_publishing is false", r.Last, r.Count)
	}
	if r := l.Refused; r.Count > 0 {
		add("publications_refused", "Publications were refused: "+r.Why, r.Last, r.Count)
	}
	return all
}
