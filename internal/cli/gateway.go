package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

func newGateway(p *process) *cobra.Command {
	return group("gateway", "Administer the gateway",
		`Administer the gateway: which APIs it serves, what its plugins do with their calls, and who may call them. The
administration is on a listener of its own, which is not public: run this where it can be reached, or name it with --admin.`,
		`# Serve an upstream at /quotes
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes

# Allow 100 calls a minute
freshet gateway plugins add quotes rate-limiting minute=100

# Somebody with a key
freshet gateway consumers create ada && freshet gateway keys add ada`,
		newGatewayAPIs(p), newGatewayPlugins(p), newGatewayConsumers(p), newGatewayKeys(p))
}

func milliTime(ms int64) string {
	if ms == 0 {
		return ""
	}
	return when(time.UnixMilli(ms))
}

func newGatewayAPIs(p *process) *cobra.Command {
	return group("apis", "Manage the APIs that the gateway serves",
		`Manage the APIs that the gateway serves. API is a name or an id.`,
		`# Serve an upstream at a path
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes

# What is served
freshet gateway apis list

# Another upstream
freshet gateway apis update quotes --upstream http://10.0.0.6:9000`,
		newAPICreate(p), newAPIList(p), newAPIShow(p), newAPIUpdate(p), newAPIDelete(p))
}

// apiFlags are the fields of an API.
type apiFlags struct {
	name, upstream, path string
	strip, preserveHost  bool
}

func (f *apiFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	addText(flags, &f.upstream, "upstream", "URL", "Where calls go")
	addText(flags, &f.path, "path", "PATH", "Where the gateway serves it, such as /quotes")
	flags.BoolVar(&f.strip, "strip-path", false, "Leave the path out when calling the upstream")
	flags.BoolVar(&f.preserveHost, "preserve-host", false, "Tell the upstream the host that the caller asked for")
}

func (f *apiFlags) fields(k *call) client.Fields {
	fields := client.Fields{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{
		"name": {"name", f.name}, "upstream": {"upstream_url", f.upstream}, "path": {"request_path", f.path},
		"strip-path": {"strip_request_path", f.strip}, "preserve-host": {"preserve_host", f.preserveHost},
	} {
		if k.given(flag) {
			fields[field.name] = field.value
		}
	}
	return fields
}

func showAPI(k *call, a *client.API) error {
	return k.out.facts(a, [][]string{
		{"Id", a.ID}, {"Name", a.Name}, {"Path", a.RequestPath}, {"Upstream", a.UpstreamURL}, {"Strip path", yesNo(a.StripRequestPath)},
		{"Preserve host", yesNo(a.PreserveHost)}, {"Reached at", k.c.BaseURL() + a.RequestPath}, {"Created", milliTime(a.CreatedAt)},
	})
}

func newAPICreate(p *process) *cobra.Command {
	var f apiFlags
	return verb{
		use: "create NAME", short: "Serve an API",
		long: `Serve an API: calls to the path go to the upstream. It takes effect on every node within a second.`,
		example: `# At a path; the upstream sees the path too
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes

# The upstream does not see the path
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes --strip-path

# Try it
curl http://localhost:8000/quotes`,
		anonymous: true, flags: f.add,
		run: func(k *call) error {
			fields := f.fields(k)
			fields["name"] = k.args[0]
			api, err := k.c.Gateway().CreateAPI(k.ctx, fields)
			if err != nil {
				return err
			}
			return showAPI(k, api)
		},
	}.command(p)
}

func newAPIList(p *process) *cobra.Command {
	return verb{
		use: "list", short: "List the APIs", long: `List the APIs that the gateway serves.`,
		example: `# For people
freshet gateway apis list

# For scripts
freshet gateway apis list -o json

# Of another gateway
freshet gateway apis list --admin http://10.0.0.5:8001`,
		anonymous: true,
		run: func(k *call) error {
			all, err := k.c.Gateway().APIs(k.ctx)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, a := range all {
				rows = append(rows, []string{a.ID, a.Name, a.RequestPath, a.UpstreamURL, milliTime(a.CreatedAt)})
			}
			return k.out.rows(orEmpty(all), []string{"ID", "NAME", "PATH", "UPSTREAM", "CREATED"}, rows, "No APIs yet; freshet gateway apis create NAME serves one.")
		},
	}.command(p)
}

func newAPIShow(p *process) *cobra.Command {
	return verb{
		use: "show API", short: "Show an API", long: `Show an API that the gateway serves.`,
		example: `# By name
freshet gateway apis show quotes

# For a script
freshet gateway apis show quotes -o json

# Its plugins
freshet gateway plugins list quotes`,
		anonymous: true,
		run: func(k *call) error {
			api, err := k.c.Gateway().API(k.ctx, k.args[0])
			if err != nil {
				return err
			}
			return showAPI(k, api)
		},
	}.command(p)
}

func newAPIUpdate(p *process) *cobra.Command {
	var f apiFlags
	return verb{
		use: "update API", short: "Change an API", long: `Change an API. What no flag names stays as it is.`,
		example: `# Another upstream
freshet gateway apis update quotes --upstream http://10.0.0.6:9000

# Another path
freshet gateway apis update quotes --path /prices

# The upstream does not see the path any more
freshet gateway apis update quotes --strip-path`,
		anonymous: true,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &f.name, "name", "NAME", "Another name")
			f.add(cmd)
		},
		run: func(k *call) error {
			api, err := k.c.Gateway().UpdateAPI(k.ctx, k.args[0], f.fields(k))
			if err != nil {
				return err
			}
			return showAPI(k, api)
		},
	}.command(p)
}

func newAPIDelete(p *process) *cobra.Command {
	yes := false
	return verb{
		use: "delete API", short: "Stop serving an API", long: `Stop serving an API, and forget its plugins.`,
		example: `# It asks first
freshet gateway apis delete quotes

# From a script
freshet gateway apis delete quotes --yes

# Which are there
freshet gateway apis list`,
		anonymous: true,
		flags:     func(cmd *cobra.Command) { addYes(cmd, &yes) },
		run: func(k *call) error {
			if err := k.confirm(yes, "Stop serving "+plain(k.args[0])+" and forget its plugins?"); err != nil {
				return err
			}
			return k.c.Gateway().DeleteAPI(k.ctx, k.args[0])
		},
	}.command(p)
}

func newGatewayPlugins(p *process) *cobra.Command {
	return group("plugins", "Manage what the gateway does with calls",
		`Manage the plugins of an API: cors answers browsers of other origins, key-auth asks for a key, rate-limiting allows so many calls.
Each can be there once.`,
		`# Ask for a key
freshet gateway plugins add quotes key-auth

# Allow 100 calls a minute
freshet gateway plugins add quotes rate-limiting minute=100

# What is there
freshet gateway plugins list quotes`,
		newPluginAdd(p), newPluginList(p), newPluginUpdate(p), newPluginRemove(p))
}

// readConfig turns name=value words into a configuration. Numbers, true, false and lists mean what they look like.
func readConfig(k *call, words []string) (client.Fields, error) {
	config := client.Fields{}
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, usage(k.cmd, "%s must look like name=value", quote(word))
		}
		config[strings.TrimPrefix(name, "config.")] = configValue(text)
	}
	return config, nil
}

func configValue(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
		return b
	}
	return text
}

func configText(config map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(config)) {
		value, err := json.Marshal(config[name])
		if err != nil || config[name] == nil {
			continue
		}
		parts = append(parts, name+"="+strings.Trim(string(value), `"`))
	}
	return strings.Join(parts, " ")
}

func showPlugin(k *call, g *client.Plugin) error {
	return k.out.facts(g, [][]string{{"Id", g.ID}, {"API", g.APIID}, {"Name", g.Name}, {"Config", configText(g.Config)},
		{"Enabled", yesNo(g.Enabled)}, {"Created", milliTime(g.CreatedAt)}})
}

func newPluginAdd(p *process) *cobra.Command {
	cmd := verb{
		use: "add API PLUGIN [CONFIG]", short: "Attach a plugin to an API",
		long: `Attach a plugin to an API: cors, key-auth or rate-limiting. CONFIG is any number of name=value words.`,
		example: `# Allow 5 calls a second and 100 a minute
freshet gateway plugins add quotes rate-limiting second=5 minute=100

# Ask for a key in the header or parameter X-Key
freshet gateway plugins add quotes key-auth key_names=X-Key

# Let pages of one origin call it
freshet gateway plugins add quotes cors origin=https://example.com`,
		anonymous: true,
		run: func(k *call) error {
			config, err := readConfig(k, k.args[2:])
			if err != nil {
				return err
			}
			plugin, err := k.c.Gateway().AddPlugin(k.ctx, k.args[0], k.args[1], config)
			if err != nil {
				return err
			}
			return showPlugin(k, plugin)
		},
	}.command(p)
	cmd.Args = takesMore
	return cmd
}

func newPluginList(p *process) *cobra.Command {
	return verb{
		use: "list [API]", short: "List plugins", long: `List the plugins of an API, or of all.`,
		example: `# Those of one API
freshet gateway plugins list quotes

# All
freshet gateway plugins list

# For scripts
freshet gateway plugins list quotes -o json`,
		anonymous: true,
		run: func(k *call) error {
			all, err := k.c.Gateway().Plugins(k.ctx, argument(k.args, 0))
			if err != nil {
				return err
			}
			var rows [][]string
			for _, g := range all {
				rows = append(rows, []string{g.ID, g.Name, g.APIID, yesNo(g.Enabled), configText(g.Config)})
			}
			return k.out.rows(orEmpty(all), []string{"ID", "NAME", "API", "ENABLED", "CONFIG"}, rows, "No plugins yet; freshet gateway plugins add API PLUGIN attaches one.")
		},
	}.command(p)
}

// pluginID takes the id of a plugin, or its name: an API has at most one of each.
func pluginID(k *call, api, plugin string) (string, error) {
	all, err := k.c.Gateway().Plugins(k.ctx, api)
	if err != nil {
		return "", err
	}
	for _, g := range all {
		if g.Name == plugin {
			return g.ID, nil
		}
	}
	return plugin, nil
}

func newPluginUpdate(p *process) *cobra.Command {
	enabled := true
	cmd := verb{
		use: "update API PLUGIN [CONFIG]", short: "Change a plugin of an API",
		long: `Change a plugin of an API, by name or id. What is not named stays as it is.`,
		example: `# Another limit
freshet gateway plugins update quotes rate-limiting minute=200

# Switch it off for a while
freshet gateway plugins update quotes key-auth --enabled=false

# What is there
freshet gateway plugins list quotes`,
		anonymous: true,
		flags:     func(cmd *cobra.Command) { cmd.Flags().BoolVar(&enabled, "enabled", true, "Whether it does anything") },
		run: func(k *call) error {
			config, err := readConfig(k, k.args[2:])
			if err != nil {
				return err
			}
			fields := client.Fields{}
			if len(config) > 0 {
				fields["config"] = config
			}
			if k.given("enabled") {
				fields["enabled"] = enabled
			}
			id, err := pluginID(k, k.args[0], k.args[1])
			if err != nil {
				return err
			}
			plugin, err := k.c.Gateway().UpdatePlugin(k.ctx, k.args[0], id, fields)
			if err != nil {
				return err
			}
			return showPlugin(k, plugin)
		},
	}.command(p)
	cmd.Args = takesMore
	return cmd
}

func newPluginRemove(p *process) *cobra.Command {
	return verb{
		use: "remove API PLUGIN", short: "Detach a plugin from an API", long: `Detach a plugin from an API, by name or id.`,
		example: `# By name
freshet gateway plugins remove quotes key-auth

# Only switch it off
freshet gateway plugins update quotes key-auth --enabled=false

# What is there
freshet gateway plugins list quotes`,
		anonymous: true,
		run: func(k *call) error {
			id, err := pluginID(k, k.args[0], k.args[1])
			if err != nil {
				return err
			}
			return k.c.Gateway().RemovePlugin(k.ctx, k.args[0], id)
		},
	}.command(p)
}

func newGatewayConsumers(p *process) *cobra.Command {
	return group("consumers", "Manage who calls APIs through the gateway",
		`Manage consumers: those who call APIs through the gateway with keys of their own. CONSUMER is a username or an id.`,
		`# A consumer with a key
freshet gateway consumers create ada && freshet gateway keys add ada

# Known elsewhere by another id
freshet gateway consumers create ada --custom-id 4711

# All
freshet gateway consumers list`,
		newConsumerCreate(p), newConsumerList(p), newConsumerShow(p), newConsumerUpdate(p), newConsumerDelete(p))
}

func showConsumer(k *call, c *client.Consumer) error {
	return k.out.facts(c, [][]string{{"Id", c.ID}, {"Username", c.Username}, {"Custom id", c.CustomID}, {"Created", milliTime(c.CreatedAt)}})
}

func newConsumerCreate(p *process) *cobra.Command {
	var customID string
	return verb{
		use: "create USERNAME", short: "Make a consumer", long: `Make a consumer. freshet gateway keys add gives it a key.`,
		example: `# By name
freshet gateway consumers create ada

# Known elsewhere by another id, which upstreams get as X-Consumer-Custom-ID
freshet gateway consumers create ada --custom-id 4711

# A key for it
freshet gateway keys add ada`,
		anonymous: true,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &customID, "custom-id", "ID", "How you call the consumer elsewhere")
		},
		run: func(k *call) error {
			fields := client.Fields{"username": k.args[0]}
			if customID != "" {
				fields["custom_id"] = customID
			}
			made, err := k.c.Gateway().CreateConsumer(k.ctx, fields)
			if err != nil {
				return err
			}
			return showConsumer(k, made)
		},
	}.command(p)
}

func newConsumerList(p *process) *cobra.Command {
	return verb{
		use: "list", short: "List the consumers", long: `List those who call APIs through the gateway.`,
		example: `# For people
freshet gateway consumers list

# For scripts
freshet gateway consumers list -o json

# The keys of one
freshet gateway keys list ada`,
		anonymous: true,
		run: func(k *call) error {
			all, err := k.c.Gateway().Consumers(k.ctx)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, c := range all {
				rows = append(rows, []string{c.ID, c.Username, c.CustomID, milliTime(c.CreatedAt)})
			}
			return k.out.rows(orEmpty(all), []string{"ID", "USERNAME", "CUSTOM ID", "CREATED"}, rows, "No consumers yet; freshet gateway consumers create USERNAME makes one.")
		},
	}.command(p)
}

func newConsumerShow(p *process) *cobra.Command {
	return verb{
		use: "show CONSUMER", short: "Show a consumer", long: `Show a consumer.`,
		example: `# By username
freshet gateway consumers show ada

# For a script
freshet gateway consumers show ada -o json

# Its keys
freshet gateway keys list ada`,
		anonymous: true,
		run: func(k *call) error {
			found, err := k.c.Gateway().Consumer(k.ctx, k.args[0])
			if err != nil {
				return err
			}
			return showConsumer(k, found)
		},
	}.command(p)
}

func newConsumerUpdate(p *process) *cobra.Command {
	var username, customID string
	return verb{
		use: "update CONSUMER", short: "Change a consumer", long: `Change a consumer. What no flag names stays as it is.`,
		example: `# Another name
freshet gateway consumers update ada --username lovelace

# Another id elsewhere
freshet gateway consumers update ada --custom-id 4712

# See it
freshet gateway consumers show ada`,
		anonymous: true,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &username, "username", "NAME", "Another name")
			addText(cmd.Flags(), &customID, "custom-id", "ID", "How you call the consumer elsewhere")
		},
		run: func(k *call) error {
			fields := client.Fields{}
			if k.given("username") {
				fields["username"] = username
			}
			if k.given("custom-id") {
				fields["custom_id"] = customID
			}
			changed, err := k.c.Gateway().UpdateConsumer(k.ctx, k.args[0], fields)
			if err != nil {
				return err
			}
			return showConsumer(k, changed)
		},
	}.command(p)
}

func newConsumerDelete(p *process) *cobra.Command {
	yes := false
	return verb{
		use: "delete CONSUMER", short: "Delete a consumer with its keys", long: `Delete a consumer with its keys, which stop working at once.`,
		example: `# It asks first
freshet gateway consumers delete ada

# From a script
freshet gateway consumers delete ada --yes

# Only one of its keys
freshet gateway keys remove ada KEY_ID`,
		anonymous: true,
		flags:     func(cmd *cobra.Command) { addYes(cmd, &yes) },
		run: func(k *call) error {
			if err := k.confirm(yes, "Delete the consumer "+plain(k.args[0])+" with its keys?"); err != nil {
				return err
			}
			return k.c.Gateway().DeleteConsumer(k.ctx, k.args[0])
		},
	}.command(p)
}

func newGatewayKeys(p *process) *cobra.Command {
	return group("keys", "Manage the keys of consumers",
		`Manage the keys of consumers, which the plugin key-auth asks for.`,
		`# A fresh key
freshet gateway keys add ada

# Use it
curl -H "apikey: $(freshet gateway keys add ada)" http://localhost:8000/quotes

# Those that ada has
freshet gateway keys list ada`,
		newGatewayKeyAdd(p), newGatewayKeyList(p), newGatewayKeyRemove(p))
}

func newGatewayKeyAdd(p *process) *cobra.Command {
	var key string
	return verb{
		use: "add CONSUMER", short: "Give a consumer a key", long: `Give a consumer a key, a fresh one or one of yours, and print it.`,
		example: `# A fresh one
freshet gateway keys add ada

# One of yours
freshet gateway keys add ada --new-key my-own-secret-key

# With its id, for a script
freshet gateway keys add ada -o json`,
		anonymous: true,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &key, "new-key", "KEY", "The key; by default the gateway makes one")
		},
		run: func(k *call) error {
			made, err := k.c.Gateway().AddKey(k.ctx, k.args[0], key)
			if err != nil {
				return err
			}
			return k.out.facts(made, [][]string{{made.Key}})
		},
	}.command(p)
}

func newGatewayKeyList(p *process) *cobra.Command {
	return verb{
		use: "list CONSUMER", short: "List the keys of a consumer", long: `List the keys of a consumer. They are secrets.`,
		example: `# For people
freshet gateway keys list ada

# For scripts
freshet gateway keys list ada -o json

# Take one away
freshet gateway keys remove ada KEY_ID`,
		anonymous: true,
		run: func(k *call) error {
			all, err := k.c.Gateway().Keys(k.ctx, k.args[0])
			if err != nil {
				return err
			}
			var rows [][]string
			for _, c := range all {
				rows = append(rows, []string{c.ID, c.Key, milliTime(c.CreatedAt)})
			}
			return k.out.rows(orEmpty(all), []string{"ID", "KEY", "CREATED"}, rows, "No keys yet; freshet gateway keys add CONSUMER makes one.")
		},
	}.command(p)
}

func newGatewayKeyRemove(p *process) *cobra.Command {
	return verb{
		use: "remove CONSUMER KEY_ID", short: "Take a key away from a consumer", long: `Take a key away from a consumer. It stops working at once.`,
		example: `# By its id
freshet gateway keys remove ada 0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77

# Which are there
freshet gateway keys list ada

# All of them, with the consumer
freshet gateway consumers delete ada`,
		anonymous: true,
		run:       func(k *call) error { return k.c.Gateway().RemoveKey(k.ctx, k.args[0], k.args[1]) },
	}.command(p)
}
