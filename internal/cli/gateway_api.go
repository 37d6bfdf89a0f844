package cli

import (
	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

var gatewayAPIs = administered[client.API]{
	fields: []fieldFlag{
		{"name", "name", "NAME", "Another name"},
		{"upstream", "upstream_url", "URL", "Where calls go"},
		{"path", "request_path", "PATH", "Where the gateway serves it, such as /quotes"},
		{"strip-path", "strip_request_path", "", "Leave the path out when calling the upstream"},
		{"preserve-host", "preserve_host", "", "Tell the upstream the host that the caller asked for"},
	},
	facts: func(k *call, a *client.API) [][]string {
		return [][]string{
			{"Id", a.ID}, {"Name", a.Name}, {"Path", a.RequestPath}, {"Upstream", a.UpstreamURL}, {"Strip path", yesNo(a.StripRequestPath)},
			{"Preserve host", yesNo(a.PreserveHost)}, {"Reached at", k.c.BaseURL() + a.RequestPath}, {"Created", milliTime(a.CreatedAt)},
		}
	},
	columns: []string{"ID", "NAME", "PATH", "UPSTREAM", "CREATED"},
	row: func(a *client.API) []string {
		return []string{a.ID, a.Name, a.RequestPath, a.UpstreamURL, milliTime(a.CreatedAt)}
	},
	none: "No APIs yet; freshet gateway apis create NAME serves one.",

	create: (*client.Gateway).CreateAPI, list: (*client.Gateway).APIs, one: (*client.Gateway).API,
	update: (*client.Gateway).UpdateAPI, remove: (*client.Gateway).DeleteAPI,
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
		gatewayAPIs.commands(p,
			verb{use: "create NAME", short: "Serve an API", long: `Serve an API: calls to the path go to the upstream. It takes effect on every node within a second.`,
				example: `# At a path; the upstream sees the path too
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes

# The upstream does not see the path
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes --strip-path

# Try it
curl http://localhost:8000/quotes`},
			verb{use: "list", short: "List the APIs", long: `List the APIs that the gateway serves.`,
				example: `# For people
freshet gateway apis list

# For scripts
freshet gateway apis list -o json

# Of another gateway
freshet gateway apis list --admin http://10.0.0.5:8001`},
			verb{use: "show API", short: "Show an API", long: `Show an API that the gateway serves.`,
				example: `# By name
freshet gateway apis show quotes

# For a script
freshet gateway apis show quotes -o json

# Its plugins
freshet gateway plugins list quotes`},
			verb{use: "update API", short: "Change an API", long: `Change an API. What no flag names stays as it is.`,
				example: `# Another upstream
freshet gateway apis update quotes --upstream http://10.0.0.6:9000

# Another path
freshet gateway apis update quotes --path /prices

# The upstream does not see the path any more
freshet gateway apis update quotes --strip-path`},
			verb{use: "delete API", short: "Stop serving an API", long: `Stop serving an API, and forget its plugins.`,
				example: `# It asks first
freshet gateway apis delete quotes

# From a script
freshet gateway apis delete quotes --yes

# Which are there
freshet gateway apis list`},
			"Stop serving %s and forget its plugins?")...)
}
