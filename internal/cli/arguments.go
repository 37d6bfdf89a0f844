package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// takes checks the words of a command against its Use line: capitals are required, those in brackets are not.
func takes(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	required := 0
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			required++
		}
	}
	switch {
	case len(args) < required:
		return usage(cmd, "%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):required], " and "))
	case len(args) > len(names):
		return usage(cmd, "%s has no use for %s", cmd.CommandPath(), quote(args[len(names)]))
	}
	for i, arg := range args {
		if arg == "" {
			return usage(cmd, "%s must not be empty", strings.Trim(names[i], "[]"))
		}
	}
	return nil
}

// argument returns the i-th word, or "" if it was left out.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// group is a command that only holds others.
func group(use, short, long, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs, RunE: helpOrUnknown}
	cmd.AddCommand(commands...)
	return cmd
}

// takesMore is takes for commands whose last word may be repeated.
func takesMore(cmd *cobra.Command, args []string) error {
	return takes(cmd, args[:min(len(args), len(strings.Fields(cmd.Use))-1)])
}
