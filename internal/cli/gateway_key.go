package cli

import (
	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

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
	}.administering(p)
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
		run: table([]string{"ID", "KEY", "CREATED"}, "No keys yet; freshet gateway keys add CONSUMER makes one.",
			func(k *call) ([]client.ConsumerKey, error) { return k.c.Gateway().Keys(k.ctx, k.args[0]) },
			func(c *client.ConsumerKey) []string {
				return []string{c.ID, c.Key, milliTime(c.CreatedAt)}
			}),
	}.administering(p)
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
		run: func(k *call) error { return k.c.Gateway().RemoveKey(k.ctx, k.args[0], k.args[1]) },
	}.administering(p)
}
