package manage

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/freshet-io/freshet/internal/catalog"
)

// TopicPath is where a topic is.
type TopicPath struct {
	TopicID string `path:"topic_id" example:"0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77" doc:"Identifier of the topic"`
}

func (in *TopicPath) ref() catalog.TopicRef { return catalog.TopicRef{ID: in.TopicID} }

// AppTopicPath is where it is too, below its app.
type AppTopicPath struct {
	AppPath
	TopicPath
}

func (in *AppTopicPath) ref() catalog.TopicRef {
	return catalog.TopicRef{AppID: in.AppID, ID: in.TopicID}
}

const topicsTag = "Topics"

func (a *api) topics(h huma.API) {
	tags := []string{topicsTag}
	handle(a, h, huma.Operation{
		OperationID: "create-topic", Method: http.MethodPost, Path: "/apps/{app_id}/topics", Tags: tags, Security: signedIn,
		DefaultStatus: http.StatusCreated, Summary: "Create a topic",
		Description: "An `http-poller` topic polls a URL; to an `http-post` topic somebody publishes. What is left out comes from the app. " +
			"One more than the quota `topics` of the app or of its account allows is refused (403).",
		Errors:      []int{http.StatusForbidden},
		RequestBody: bodyExamples(newTopicExamples...),
	}, a.createTopic)
	handle(a, h, huma.Operation{
		OperationID: "list-topics", Method: http.MethodGet, Path: "/apps/{app_id}/topics", Tags: tags, Security: signedIn,
		Summary: "List the topics of an app",
	}, a.listTopics)

	get, update, remove := topicOperations("topic", "/topics/{topic_id}")
	handle(a, h, get, func(ctx context.Context, in *TopicPath) (*body[topic], error) { return a.getTopic(ctx, in.ref()) })
	handle(a, h, update, func(ctx context.Context, in *struct {
		TopicPath
		Body topicPatch
	}) (*body[topic], error) {
		return a.updateTopic(ctx, in.ref(), in.Body)
	})
	handle(a, h, remove, func(ctx context.Context, in *TopicPath) (*struct{}, error) { return a.deleteTopic(ctx, in.ref()) })

	get, update, remove = topicOperations("app-topic", "/apps/{app_id}/topics/{topic_id}")
	handle(a, h, get, func(ctx context.Context, in *AppTopicPath) (*body[topic], error) { return a.getTopic(ctx, in.ref()) })
	handle(a, h, update, func(ctx context.Context, in *struct {
		AppTopicPath
		Body topicPatch
	}) (*body[topic], error) {
		return a.updateTopic(ctx, in.ref(), in.Body)
	})
	handle(a, h, remove, func(ctx context.Context, in *AppTopicPath) (*struct{}, error) { return a.deleteTopic(ctx, in.ref()) })

	a.documents(h)
	a.refreshes(h)
	a.trials(h)
}

// topicOperations describes what can be done with one topic, which has two addresses.
func topicOperations(name, path string) (get, update, remove huma.Operation) {
	op := func(verb, method, summary, description string) huma.Operation {
		return huma.Operation{
			OperationID: verb + "-" + name, Method: method, Path: path, Tags: []string{topicsTag}, Security: signedIn,
			Summary: summary, Description: description,
		}
	}
	get = op("get", http.MethodGet, "Read a topic", "Its settings are those in force.")
	update = op("update", http.MethodPatch, "Change a topic",
		patchRules+" The publisher's type and payload are for life; they may be repeated. 409 for topics that belong to their subscribers.")
	update.Errors = []int{http.StatusConflict}
	update.RequestBody = bodyExamples(
		example{"Another name", map[string]any{"name": "Quotes of Lyon"}},
	)
	remove = op("delete", http.MethodDelete, "Delete a topic", "Its streams end.")
	remove.DefaultStatus = http.StatusNoContent
	return get, update, remove
}

func (a *api) createTopic(ctx context.Context, in *struct {
	AppPath
	Body newTopic
}) (*created[topic], error) {
	made, err := a.Catalog.CreateTopic(ctx, actor(ctx), in.AppID, in.Body.fill)
	if err != nil {
		return nil, err
	}
	return &created[topic]{Location: BasePath + "/topics/" + made.ID, Body: showTopic(made)}, nil
}

func (a *api) listTopics(ctx context.Context, in *struct {
	AppPath
	Paging
}) (*body[page[topic]], error) {
	list, err := a.Catalog.Topics(ctx, actor(ctx), in.AppID, in.rows())
	if err != nil {
		return nil, err
	}
	return pageOf(list, in.Paging, "/apps/"+in.AppID+"/topics", nil, showTopic), nil
}

func (a *api) getTopic(ctx context.Context, ref catalog.TopicRef) (*body[topic], error) {
	found, err := a.Catalog.Topic(ctx, actor(ctx), ref)
	if err != nil {
		return nil, err
	}
	return &body[topic]{Body: showTopic(found)}, nil
}

func (a *api) updateTopic(ctx context.Context, ref catalog.TopicRef, patch topicPatch) (*body[topic], error) {
	changed, err := a.Catalog.UpdateTopic(ctx, actor(ctx), ref, patch.change)
	if err != nil {
		return nil, err
	}
	return &body[topic]{Body: showTopic(changed)}, nil
}

func (a *api) deleteTopic(ctx context.Context, ref catalog.TopicRef) (*struct{}, error) {
	return nil, a.Catalog.DeleteTopic(ctx, actor(ctx), ref)
}
