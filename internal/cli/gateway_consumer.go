package cli

import (
	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

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
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &customID, "custom-id", "ID", "How you call the consumer elsewhere")
		},
		run: thing(showConsumer, func(k *call) (*client.Consumer, error) {
			fields := k.fields(flagged{"custom-id", "custom_id", customID})
			fields["username"] = k.args[0]
			return k.c.Gateway().CreateConsumer(k.ctx, fields)
		}),
	}.administering(p)
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
		run: table([]string{"ID", "USERNAME", "CUSTOM ID", "CREATED"}, "No consumers yet; freshet gateway consumers create USERNAME makes one.",
			func(k *call) ([]client.Consumer, error) { return k.c.Gateway().Consumers(k.ctx) },
			func(c *client.Consumer) []string {
				return []string{c.ID, c.Username, c.CustomID, milliTime(c.CreatedAt)}
			}),
	}.administering(p)
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
		run: thing(showConsumer, func(k *call) (*client.Consumer, error) { return k.c.Gateway().Consumer(k.ctx, k.args[0]) }),
	}.administering(p)
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
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &username, "username", "NAME", "Another name")
			addText(cmd.Flags(), &customID, "custom-id", "ID", "How you call the consumer elsewhere")
		},
		run: thing(showConsumer, func(k *call) (*client.Consumer, error) {
			fields := k.fields(flagged{"username", "username", username}, flagged{"custom-id", "custom_id", customID})
			return k.c.Gateway().UpdateConsumer(k.ctx, k.args[0], fields)
		}),
	}.administering(p)
}

func newConsumerDelete(p *process) *cobra.Command {
	return verb{
		use: "delete CONSUMER", short: "Delete a consumer with its keys", long: `Delete a consumer with its keys, which stop working at once.`,
		example: `# It asks first
freshet gateway consumers delete ada

# From a script
freshet gateway consumers delete ada --yes

# Only one of its keys
freshet gateway keys remove ada KEY_ID`,
		run: func(k *call) error { return k.c.Gateway().DeleteConsumer(k.ctx, k.args[0]) },
	}.asking(p, "Delete the consumer %s with its keys?")
}
