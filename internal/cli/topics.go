package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

func newTopics(p *process) *cobra.Command {
	return group("topics", "Make and manage topics",
		`Make and manage topics. A topic is one document that changes over time, fed by publications or by polling an API. TOPIC is an
id, a name, or APP/NAME.`,
		`# A topic to publish to
freshet topics create Quotes Paris

# A topic that polls an API
freshet topics create Weather Paris --poll https://api.example.com/paris.json

# What it holds now
freshet topics document Paris`,
		newTopicCreate(p), newTopicList(p), newTopicShow(p), newTopicDocument(p), newTopicUpdate(p), newTopicRefresh(p), newTopicDelete(p))
}

// topicFlags are the settings of a topic that may change.
type topicFlags struct {
	name, url       string
	pollEvery       time.Duration
	forcePublishing bool
	headers         []string
}

func (f *topicFlags) add(cmd *cobra.Command, urlFlag, urlHelp string) {
	flags := cmd.Flags()
	addText(flags, &f.url, urlFlag, "URL", urlHelp)
	flags.DurationVar(&f.pollEvery, "poll-every", 0, "How often to poll; by default what the app says")
	flags.Var(&listFlag{&f.headers, "HEADER"}, "header", "A header for polling, like 'Name: value'; may be repeated")
	flags.BoolVar(&f.forcePublishing, "force-publishing", true, "Keep publications even when nobody is subscribed")
}

func (f *topicFlags) config(k *call, urlFlag string) (client.ConfigChange, error) {
	config := client.ConfigChange{
		URL:              setIf(k, urlFlag, f.url),
		PollingFrequency: setIf(k, "poll-every", f.pollEvery.Milliseconds()),
		ForcePublishing:  setIf(k, "force-publishing", f.forcePublishing),
	}
	if k.given("header") {
		parsed, err := readHeaders(k.cmd, f.headers)
		if err != nil {
			return config, err
		}
		headers := map[string]string{}
		for name := range parsed {
			headers[name] = parsed.Get(name)
		}
		config.Headers = client.Set(headers)
	}
	return config, nil
}

func newTopicCreate(p *process) *cobra.Command {
	var f topicFlags
	var itemID string
	return verb{
		use: "create APP NAME", short: "Make a topic",
		long: `Make a topic in an app. Without --poll it is one to publish to. With --items, publications are arrays of items that update
their namesakes, and subscribers may ask for some of them only.`,
		example: `# A topic to publish documents to
freshet topics create Quotes Paris

# A topic of items, each known by its symbol
freshet topics create Quotes Prices --items .symbol

# A topic that polls an API every 5 seconds
freshet topics create Weather Paris --poll https://api.example.com/paris.json --poll-every 5s`,
		complete: appNames,
		flags: func(cmd *cobra.Command) {
			f.add(cmd, "poll", "Poll this URL instead of waiting for publications")
			addText(cmd.Flags(), &itemID, "items", "PATH", "Publications are arrays of items; the path to an item's id, like .symbol")
		},
		run: func(k *call) error {
			config, err := f.config(k, "poll")
			if err != nil {
				return err
			}
			topic := client.NewTopic{Name: k.args[1], Publisher: client.NewPublisher{Type: freshet.HTTPPost, Config: config}}
			if f.url != "" {
				topic.Publisher.Type = freshet.HTTPPoller
			}
			if itemID != "" {
				topic.Publisher.Payload = &client.Payload{Type: freshet.PayloadItem, ItemIDPath: itemID}
			}
			app, err := findApp(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			made, err := k.c.CreateTopic(k.ctx, app.ID, topic)
			if err != nil {
				return err
			}
			return showTopic(k, made)
		},
	}.command(p)
}

// listedTopic is a topic with the name of its app.
type listedTopic struct {
	client.Topic
	AppName string `json:"app_name"`
}

func newTopicList(p *process) *cobra.Command {
	return verb{
		use: "list [APP]", short: "List topics",
		long: `List the topics of an app, or of all your apps.`,
		example: `# All of yours
freshet topics list

# Those of one app
freshet topics list Quotes

# Their ids, for a script
freshet topics list Quotes -o json | jq -r '.[].id'`,
		complete: appNames,
		run: func(k *call) error {
			apps, err := chosenApps(k)
			if err != nil {
				return err
			}
			all := []listedTopic{}
			var rows [][]string
			for _, app := range apps {
				for t, err := range k.c.Topics(k.ctx, app.ID) {
					if err != nil {
						return err
					}
					t.Links = nil
					all = append(all, listedTopic{t, app.Name})
					rows = append(rows, []string{t.ID, app.Name, t.Name, sourceText(&t), string(t.Publisher.Payload.Type), when(t.CreatedAt)})
				}
			}
			return k.out.rows(all, []string{"ID", "APP", "NAME", "SOURCE", "PAYLOAD", "CREATED"}, rows, "No topics yet; freshet topics create APP NAME makes one.")
		},
	}.command(p)
}

func chosenApps(k *call) ([]client.App, error) {
	if len(k.args) == 0 {
		return client.Collect(k.c.Apps(k.ctx))
	}
	app, err := findApp(k.ctx, k.c, k.args[0])
	if err != nil {
		return nil, err
	}
	return []client.App{*app}, nil
}

// sourceText says where the content of a topic comes from.
func sourceText(t *client.Topic) string {
	if t.Publisher.Config.URL != nil {
		return *t.Publisher.Config.URL
	}
	return "publications"
}

func showTopic(k *call, t *client.Topic) error {
	config := &t.Publisher.Config
	pairs := [][]string{{"Id", t.ID}, {"Name", t.Name}, {"App", t.AppID}, {"Source", sourceText(t)}}
	if config.PollingFrequency != nil {
		pairs = append(pairs, []string{"Poll every", millis(*config.PollingFrequency)})
	}
	if config.ForcePublishing != nil {
		pairs = append(pairs, []string{"Force publishing", yesNo(*config.ForcePublishing)})
	}
	payload := string(t.Publisher.Payload.Type)
	if path := t.Publisher.Payload.ItemIDPath; path != "" {
		payload += " by " + path
	}
	return k.out.facts(t, append(pairs, []string{"Payload", payload},
		[]string{"Stream", k.c.SubscriberURL() + "/v1/topics/" + t.ID},
		[]string{"Publish to", k.c.BaseURL() + "/publish/v1/topics/" + t.ID},
		[]string{"Created", when(t.CreatedAt)}, []string{"Changed", when(t.UpdatedAt)}))
}

func newTopicShow(p *process) *cobra.Command {
	return verb{
		use: "show TOPIC", short: "Show a topic",
		long: `Show a topic: where its content comes from, and where to publish and to subscribe.`,
		example: `# By name
freshet topics show Paris

# By app and name, where several apps have one of that name
freshet topics show Quotes/Paris

# For a script
freshet topics show Paris -o json`,
		complete: topicNames,
		run: func(k *call) error {
			topic, err := findTopic(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			return showTopic(k, topic)
		},
	}.command(p)
}

func newTopicDocument(p *process) *cobra.Command {
	return verb{
		use: "document TOPIC", short: "Print what a topic holds now",
		long: `Print the current document of a topic, as it was published. With -o json the version comes with it.`,
		example: `# What it holds
freshet topics document Paris

# One member of it
freshet topics document Paris | jq .ACME

# With its version, for freshet publish --if-match
freshet topics document Paris -o json`,
		complete: topicNames,
		run: func(k *call) error {
			topic, err := findTopic(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			text, version, err := k.c.Document(k.ctx, topic.ID)
			if err != nil {
				return err
			}
			if !k.out.isJSON() {
				_, err = k.out.p.stdout.Write(append(text, '\n'))
				return err
			}
			return k.out.json(map[string]any{"version": version, "document": exactJSON(text)})
		},
	}.command(p)
}

// exactJSON goes into JSON as it is.
type exactJSON []byte

// MarshalJSON implements json.Marshaler.
func (e exactJSON) MarshalJSON() ([]byte, error) { return e, nil }

func newTopicUpdate(p *process) *cobra.Command {
	var f topicFlags
	return verb{
		use: "update TOPIC", short: "Change a topic",
		long: `Change a topic. What no flag names stays as it is. Whether it polls or takes publications, and its payload, are for life.`,
		example: `# Another name
freshet topics update Paris --name "Paris, France"

# Poll less often
freshet topics update Paris --poll-every 30s

# Drop publications while nobody is subscribed
freshet topics update Quotes/Paris --force-publishing=false`,
		complete: topicNames,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &f.name, "name", "NAME", "Another name")
			f.add(cmd, "url", "Poll another URL")
		},
		run: func(k *call) error {
			config, err := f.config(k, "url")
			if err != nil {
				return err
			}
			change := client.TopicChange{Name: setIf(k, "name", f.name)}
			if k.given("url") || k.given("poll-every") || k.given("header") || k.given("force-publishing") {
				change.Publisher = client.Set(client.PublisherChange{Config: client.Set(config)})
			}
			topic, err := findTopic(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			if topic, err = k.c.UpdateTopic(k.ctx, topic.ID, change); err != nil {
				return err
			}
			return showTopic(k, topic)
		},
	}.command(p)
}

func newTopicRefresh(p *process) *cobra.Command {
	return verb{
		use: "refresh TOPIC", short: "Poll a topic's API now",
		long: `Make the server poll the API behind a topic now, instead of when its time has come.`,
		example: `# Poll now
freshet topics refresh Paris

# And see what came
freshet topics document Paris

# Poll more often
freshet topics update Paris --poll-every 1s`,
		complete: topicNames,
		run: func(k *call) error {
			topic, err := findTopic(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			return k.c.RefreshTopic(k.ctx, topic.ID)
		},
	}.command(p)
}

func newTopicDelete(p *process) *cobra.Command {
	yes := false
	return verb{
		use: "delete TOPIC", short: "Delete a topic",
		long: `Delete a topic and its document. Its streams end at once, and nothing brings it back.`,
		example: `# It asks first
freshet topics delete Paris

# From a script
freshet topics delete Quotes/Paris --yes

# By id
freshet topics delete 0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77 --yes`,
		complete: topicNames,
		flags:    func(cmd *cobra.Command) { addYes(cmd, &yes) },
		run: func(k *call) error {
			topic, err := findTopic(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			if err := k.confirm(yes, "Delete the topic "+plain(topic.Name)+"?"); err != nil {
				return err
			}
			return k.c.DeleteTopic(k.ctx, topic.ID)
		},
	}.command(p)
}
