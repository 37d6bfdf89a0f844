package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page",
		Long:  `Print the manual page freshet(1): every command and every flag.`,
		Example: `# Read it
freshet man | man -l -

# Install it
freshet man > /usr/local/share/man/man1/freshet.1

# As plain text
freshet man | man -l - | col -b`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return writeMan(cmd.OutOrStdout(), cmd.Root()) },
	}
}

// writeMan puts all commands on one page: there are few, and one page can be searched.
func writeMan(w io.Writer, root *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH FRESHET 1 \"\" \"freshet %s\" \"User Commands\"\n", roff(readBuild().Version))
	fmt.Fprintf(&b, ".SH NAME\nfreshet \\- %s\n", roff(root.Short))
	b.WriteString(".SH SYNOPSIS\n.B freshet\n.I COMMAND\n[flags]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(root.Long))
	b.WriteString(".SH COMMANDS\n")
	writeManCommands(&b, root)
	b.WriteString(".SH EXIT STATUS\n")
	b.WriteString("0 if all went well, 1 for an unexpected failure, 2 for a mistake in the command line or the settings, 3 for\n" +
		"credentials that do not hold, 4 for something that does not exist, 5 for a clash with something that does, such as\n" +
		"a port in use, 6 when trying again can help.\n")
	fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(root.Example))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeManCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		if cmd.HasAvailableSubCommands() {
			writeManCommands(b, cmd)
			continue
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", roff(strings.TrimPrefix(useLine(cmd), "freshet ")), roff(cmd.Long))
		mainFlags, moreFlags := splitFlags(cmd)
		for _, f := range append(mainFlags, moreFlags...) {
			fmt.Fprintf(b, ".TP\n.B \\-\\-%s\n.I %s\n%s\n", roff(f.Name), roff(valueName(f)), roff(describe(f)))
		}
	}
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff escapes a text for the manual. Dashes stay dashes, so that flags can be copied out of it.
func roff(text string) string { return roffEscapes.Replace(text) }
