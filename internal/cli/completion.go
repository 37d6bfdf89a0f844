package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/internal/settings"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands and flags in your shell",
		Long:  `Print a script that completes freshet's commands, flags and their values in bash, zsh, fish or powershell.`,
		Example: `# bash, for this session
source <(freshet completion bash)

# zsh, for good
freshet completion zsh > "${fpath[1]}/_freshet"

# fish, for good
freshet completion fish > ~/.config/fish/completions/freshet.fish`,
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "which shell? One of %s", strings.Join(shells, ", "))
			}
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			text := quote(args[0]) + " is not one of " + strings.Join(shells, ", ")
			if near := settings.Nearest(args[0], shells); near != "" {
				text += "; did you mean " + near + "?"
			}
			return usage(cmd, "%s", text)
		},
	}
}
