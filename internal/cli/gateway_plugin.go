package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/registry"
)

func newGatewayPlugins(p *process) *cobra.Command {
	return group("plugins", "Manage what the gateway does with calls",
		"Manage the plugins of an API: "+whatPluginsDo()+". Each can be there once.",
		`# Ask for a key
freshet gateway plugins add quotes key-auth

# Allow 100 calls a minute
freshet gateway plugins add quotes rate-limiting minute=100

# What is there
freshet gateway plugins list quotes`,
		newPluginAdd(p), newPluginList(p), newPluginUpdate(p), newPluginRemove(p))
}

// whatPluginsDo names every plugin and what it does with calls.
func whatPluginsDo() string {
	var all []string
	for _, kind := range registry.Kinds() {
		all = append(all, kind.Name+" "+kind.Does)
	}
	return strings.Join(all, ", ")
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
		long: "Attach a plugin to an API: " + strings.Join(registry.KindNames(), ", ") + ". CONFIG is any number of name=value words.",
		example: `# Allow 5 calls a second and 100 a minute
freshet gateway plugins add quotes rate-limiting second=5 minute=100

# Ask for a key in the header or parameter X-Key
freshet gateway plugins add quotes key-auth key_names=X-Key

# Let pages of one origin call it
freshet gateway plugins add quotes cors origin=https://example.com`,
		run: thing(showPlugin, func(k *call) (*client.Plugin, error) {
			config, err := readConfig(k, k.args[2:])
			if err != nil {
				return nil, err
			}
			return k.c.Gateway().AddPlugin(k.ctx, k.args[0], k.args[1], config)
		}),
	}.administering(p)
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
		run: table([]string{"ID", "NAME", "API", "ENABLED", "CONFIG"}, "No plugins yet; freshet gateway plugins add API PLUGIN attaches one.",
			func(k *call) ([]client.Plugin, error) { return k.c.Gateway().Plugins(k.ctx, argument(k.args, 0)) },
			func(g *client.Plugin) []string {
				return []string{g.ID, g.Name, g.APIID, yesNo(g.Enabled), configText(g.Config)}
			}),
	}.administering(p)
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
		flags: func(cmd *cobra.Command) { cmd.Flags().BoolVar(&enabled, "enabled", true, "Whether it does anything") },
		run: thing(showPlugin, func(k *call) (*client.Plugin, error) {
			config, err := readConfig(k, k.args[2:])
			if err != nil {
				return nil, err
			}
			fields := client.Fields{}
			if k.given("enabled") {
				fields["enabled"] = enabled
			}
			if len(config) > 0 {
				fields["config"] = config
			}
			id, err := pluginID(k, k.args[0], k.args[1])
			if err != nil {
				return nil, err
			}
			return k.c.Gateway().UpdatePlugin(k.ctx, k.args[0], id, fields)
		}),
	}.administering(p)
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
		run: func(k *call) error {
			id, err := pluginID(k, k.args[0], k.args[1])
			if err != nil {
				return err
			}
			return k.c.Gateway().RemovePlugin(k.ctx, k.args[0], id)
		},
	}.administering(p)
}
