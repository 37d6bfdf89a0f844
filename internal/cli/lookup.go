package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

// findApp takes an app's id or its name, which is unique among somebody's apps.
func findApp(ctx context.Context, c *client.Client, idOrName string) (*client.App, error) {
	if freshet.IsID(idOrName) {
		app, err := c.App(ctx, idOrName)
		return app, told(err)
	}
	for app, err := range c.Apps(ctx) {
		if err != nil {
			return nil, told(err)
		}
		if app.Name == idOrName {
			return &app, nil
		}
	}
	return nil, &failure{error: freshet.Errorf(freshet.NotFound, "you have no app %s", quote(idOrName)), hint: "freshet apps list shows yours"}
}

// findTopic takes a topic's id, its name, or APP/NAME where several apps have one of that name.
func findTopic(ctx context.Context, c *client.Client, idOrName string) (*client.Topic, error) {
	if freshet.IsID(idOrName) {
		topic, err := c.Topic(ctx, idOrName)
		return topic, told(err)
	}
	var found []client.Topic
	var places []string
	for app, err := range c.Apps(ctx) {
		if err != nil {
			return nil, told(err)
		}
		for topic, err := range c.Topics(ctx, app.ID) {
			if err != nil {
				return nil, told(err)
			}
			if topic.Name == idOrName || app.Name+"/"+topic.Name == idOrName {
				found = append(found, topic)
				places = append(places, topic.ID+" ("+app.Name+"/"+topic.Name+")")
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, &failure{error: freshet.Errorf(freshet.TopicNotFound, "you have no topic %s", quote(idOrName)), hint: "freshet topics list shows yours"}
	case 1:
		return &found[0], nil
	}
	return nil, freshet.Errorf(freshet.Invalid, "%s is the name of several topics: %s", quote(idOrName), strings.Join(places, ", "))
}

// access is what somebody needs to use a topic.
type access struct {
	id  string
	app *client.App // nil if it is not known whose topic it is
}

// openTopic finds a topic and, for somebody who is signed in, the app with its keys. Without a session an id has to do, and
// keys come from flags.
func openTopic(ctx context.Context, c *client.Client, idOrName string) (access, error) {
	if c.Token() == "" {
		if !freshet.IsID(idOrName) {
			return access{}, &failure{
				error: freshet.Errorf(freshet.Invalid, "%s is not the id of a topic", quote(idOrName)),
				hint:  "to call topics by their names, sign in: freshet login",
			}
		}
		return access{id: idOrName}, nil
	}
	topic, err := findTopic(ctx, c, idOrName)
	if err != nil {
		if freshet.IsID(idOrName) && (freshet.KindOf(err) == freshet.NotFound || freshet.KindOf(err) == freshet.Unauthenticated) {
			return access{id: idOrName}, nil // somebody else's; a key from a flag may open it
		}
		return access{}, err
	}
	app, err := c.App(ctx, topic.AppID)
	if err != nil {
		return access{}, told(err)
	}
	return access{id: topic.ID, app: app}, nil
}

// completionTime bounds how long a shell waits for names.
const completionTime = 2 * time.Second

// complete offers what list finds for the first word. A server that does not answer just offers nothing.
func complete(r *remote, list func(context.Context, *client.Client) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := r.signedIn()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completionTime)
		defer cancel()
		defer c.CloseIdleConnections()
		return list(ctx, c), cobra.ShellCompDirectiveNoFileComp
	}
}

func appNames(ctx context.Context, c *client.Client) []string {
	var names []string
	for app, err := range c.Apps(ctx) {
		if err != nil {
			break
		}
		names = append(names, app.Name)
	}
	return names
}

func topicNames(ctx context.Context, c *client.Client) []string {
	var names []string
	for app, err := range c.Apps(ctx) {
		if err != nil {
			break
		}
		for topic, err := range c.Topics(ctx, app.ID) {
			if err != nil {
				break
			}
			names = append(names, topic.ID+"\t"+app.Name+"/"+topic.Name)
		}
	}
	return names
}
