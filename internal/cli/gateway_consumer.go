package cli

import (
	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

var gatewayConsumers = administered[client.Consumer]{
	fields: []fieldFlag{
		{"username", "username", "NAME", "Another name"},
		{"custom-id", "custom_id", "ID", "How you call the consumer elsewhere"},
	},
	facts: func(_ *call, c *client.Consumer) [][]string {
		return [][]string{{"Id", c.ID}, {"Username", c.Username}, {"Custom id", c.CustomID}, {"Created", milliTime(c.CreatedAt)}}
	},
	columns: []string{"ID", "USERNAME", "CUSTOM ID", "CREATED"},
	row: func(c *client.Consumer) []string {
		return []string{c.ID, c.Username, c.CustomID, milliTime(c.CreatedAt)}
	},
	none: "No consumers yet; freshet gateway consumers create USERNAME makes one.",

	create: (*client.Gateway).CreateConsumer, list: (*client.Gateway).Consumers, one: (*client.Gateway).Consumer,
	update: (*client.Gateway).UpdateConsumer, remove: (*client.Gateway).DeleteConsumer,
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
		gatewayConsumers.commands(p,
			verb{use: "create USERNAME", short: "Make a consumer", long: `Make a consumer. freshet gateway keys add gives it a key.`,
				example: `# By name
freshet gateway consumers create ada

# Known elsewhere by another id, which upstreams get as X-Consumer-Custom-ID
freshet gateway consumers create ada --custom-id 4711

# A key for it
freshet gateway keys add ada`},
			verb{use: "list", short: "List the consumers", long: `List those who call APIs through the gateway.`,
				example: `# For people
freshet gateway consumers list

# For scripts
freshet gateway consumers list -o json

# The keys of one
freshet gateway keys list ada`},
			verb{use: "show CONSUMER", short: "Show a consumer", long: `Show a consumer.`,
				example: `# By username
freshet gateway consumers show ada

# For a script
freshet gateway consumers show ada -o json

# Its keys
freshet gateway keys list ada`},
			verb{use: "update CONSUMER", short: "Change a consumer", long: `Change a consumer. What no flag names stays as it is.`,
				example: `# Another name
freshet gateway consumers update ada --username lovelace

# Another id elsewhere
freshet gateway consumers update ada --custom-id 4712

# See it
freshet gateway consumers show ada`},
			verb{use: "delete CONSUMER", short: "Delete a consumer with its keys", long: `Delete a consumer with its keys, which stop working at once.`,
				example: `# It asks first
freshet gateway consumers delete ada

# From a script
freshet gateway consumers delete ada --yes

# Only one of its keys
freshet gateway keys remove ada KEY_ID`},
			"Delete the consumer %s with its keys?")...)
}
