package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfig(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check settings",
		Long:  `Show and check the settings that freshet serve would run with, without starting it.`,
		Example: `# What applies here, and where it comes from
freshet config print

# Is this file right? Lists everything that is wrong, and exits with 2
freshet config check --config freshet.yaml

# Start a configuration file from what applies now
freshet config print > freshet.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	cmd.AddCommand(newConfigPrint(p), newConfigCheck(p))
	return cmd
}

var flagsOfServe = map[string]string{
	flagsElsewhere: "serve",
	helpFooter:     "It takes every flag of freshet serve; freshet serve --help lists them.",
}

func newConfigPrint(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the effective settings as YAML",
		Long: `Print the effective settings as YAML that works as a configuration file, with the origin of each value beside
it. Secrets are hidden. These are the settings of a server that would be started here and now, with this
environment and these flags; it does not ask one that runs.`,
		Example: `# What applies here
freshet config print

# What a flag changes
freshet config print --roles publish,subscribe

# What differs from the defaults
freshet config print | grep -v '# default'`,
		Args:        noArguments,
		Annotations: flagsOfServe,
		RunE: func(cmd *cobra.Command, _ []string) error {
			effective, err := p.load(cmd)
			if err != nil {
				return err
			}
			return effective.Print(p.stdout)
		},
	}
	addSettings(cmd, everySetting)
	return cmd
}

func newConfigCheck(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the settings and list everything that is wrong",
		Long: `Check the settings and list everything that is wrong: names that do not exist, with the nearest that does, and
values that are not valid, with what would be. It exits with 2 then.`,
		Example: `# A file
freshet config check --config freshet.yaml

# The environment of a container
docker run --rm --env-file freshet.env freshet config check

# A flag
freshet config check --publish-max-body 8MiB`,
		Args:        noArguments,
		Annotations: flagsOfServe,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := p.load(cmd); err != nil {
				return err
			}
			_, err := fmt.Fprintln(p.stdout, "ok")
			return err
		},
	}
	addSettings(cmd, everySetting)
	return cmd
}
