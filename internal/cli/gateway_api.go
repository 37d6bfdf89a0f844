package cli

import (
	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

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
	return k.fields(flagged{"name", "name", f.name}, flagged{"upstream", "upstream_url", f.upstream}, flagged{"path", "request_path", f.path},
		flagged{"strip-path", "strip_request_path", f.strip}, flagged{"preserve-host", "preserve_host", f.preserveHost})
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
		flags: f.add,
		run: thing(showAPI, func(k *call) (*client.API, error) {
			fields := f.fields(k)
			fields["name"] = k.args[0]
			return k.c.Gateway().CreateAPI(k.ctx, fields)
		}),
	}.administering(p)
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
		run: table([]string{"ID", "NAME", "PATH", "UPSTREAM", "CREATED"}, "No APIs yet; freshet gateway apis create NAME serves one.",
			func(k *call) ([]client.API, error) { return k.c.Gateway().APIs(k.ctx) },
			func(a *client.API) []string {
				return []string{a.ID, a.Name, a.RequestPath, a.UpstreamURL, milliTime(a.CreatedAt)}
			}),
	}.administering(p)
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
		run: thing(showAPI, func(k *call) (*client.API, error) { return k.c.Gateway().API(k.ctx, k.args[0]) }),
	}.administering(p)
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
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &f.name, "name", "NAME", "Another name")
			f.add(cmd)
		},
		run: thing(showAPI, func(k *call) (*client.API, error) { return k.c.Gateway().UpdateAPI(k.ctx, k.args[0], f.fields(k)) }),
	}.administering(p)
}

func newAPIDelete(p *process) *cobra.Command {
	return verb{
		use: "delete API", short: "Stop serving an API", long: `Stop serving an API, and forget its plugins.`,
		example: `# It asks first
freshet gateway apis delete quotes

# From a script
freshet gateway apis delete quotes --yes

# Which are there
freshet gateway apis list`,
		run: func(k *call) error { return k.c.Gateway().DeleteAPI(k.ctx, k.args[0]) },
	}.asking(p, "Stop serving %s and forget its plugins?")
}
