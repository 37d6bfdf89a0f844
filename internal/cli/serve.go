package cli

import (
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/freshet-io/freshet/internal/server"
)

func newServe(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server: the gateway with the management and publishing APIs, and the subscriber interface, in one
process and with nothing else to install. It runs until it gets SIGTERM or Ctrl-C, lets requests
finish, and exits; a second signal makes it exit at once.`,
		Example: `# Everything on this machine, with data in ./freshet-data
freshet serve

# Settings from a file, and one of them changed
freshet serve --config freshet.yaml --subscriber-listen :7080

# Production, with secrets from files
FRESHET_ADMIN_PASSWORD_FILE=/run/secrets/admin \
  freshet serve --environment production --data /var/lib/freshet`,
		Args:        noArguments,
		Annotations: map[string]string{helpFooter: settingsFooter},
		RunE: func(cmd *cobra.Command, _ []string) error {
			effective, err := p.load(cmd)
			if err != nil {
				return err
			}
			s := effective.Settings
			o := server.Options{
				Settings: s,
				Version:  readBuild().Version,
				Log:      server.NewLogger(p.stderr, &s),
			}
			for _, f := range effective.Exposed {
				o.Log.Warn("others can read a file with a secret; take that right from them (chmod 600)", "variable", f.Variable, "file", f.Path)
			}
			if isTerminal(p.stderr) {
				o.Banner, o.Colour = p.stderr, p.variable("NO_COLOR") == "" && p.variable("TERM") != "dumb"
			}
			return newSupervisor(p).supervised(cmd.Context(), func(ready func(admin string)) error {
				o.Ready = func(at server.Addresses) { ready(at.Admin) }
				return server.Run(cmd.Context(), o)
			})
		},
	}
	addSettings(cmd, everySetting)
	return cmd
}

const settingsFooter = `Each flag is also a key of the YAML file and a variable: --subscriber-listen is subscriber.listen and
FRESHET_SUBSCRIBER_LISTEN. Flags win over the environment, which wins over the file. Secrets can come
from files: FRESHET_ADMIN_PASSWORD_FILE names one. freshet config print shows what applies, and why.`

// isTerminal reports whether a person is looking at w.
func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
