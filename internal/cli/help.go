package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpWidth = 100 // columns

// newHelp is for people who type freshet help serve. It is in no list: --help does the same.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:    "help",
		Hidden: true,
		RunE: func(cmd *cobra.Command, words []string) error {
			found, rest, err := cmd.Root().Find(words)
			if err != nil {
				return err
			}
			return helpOrUnknown(found, rest)
		},
	}
}

// help explains a command: what it does, how to call it, examples, and its flags with the main ones first.
func help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	b.WriteString(paragraph(firstOf(cmd.Long, cmd.Short)) + "\nUsage:\n  " + useLine(cmd) + "\n")
	writeCommands(&b, cmd)
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + indent(cmd.Example))
	}
	mainFlags, moreFlags := splitFlags(cmd)
	if len(moreFlags) == 0 {
		writeFlags(&b, "Flags", mainFlags)
	} else {
		writeFlags(&b, "Main flags", mainFlags)
		writeFlags(&b, "More flags", moreFlags)
	}
	if footer := cmd.Annotations[helpFooter]; footer != "" {
		b.WriteString("\n" + paragraph(footer))
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String()) // nobody to tell if nobody reads
}

// helpFooter is the annotation whose text ends a command's help.
const helpFooter = "footer"

// flagsElsewhere is the annotation of commands whose settings another command's help lists.
const flagsElsewhere = "flags elsewhere"

// moreFlag is the annotation of flags that most people do not need.
const moreFlag = "more"

func useLine(cmd *cobra.Command) string {
	switch {
	case cmd.HasAvailableSubCommands():
		return cmd.CommandPath() + " COMMAND"
	case cmd.Flags().HasAvailableFlags() && hasOwnFlags(cmd):
		return cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name()) + " [flags]"
	}
	return cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
}

func hasOwnFlags(cmd *cobra.Command) bool {
	own := false
	cmd.Flags().VisitAll(func(f *pflag.Flag) { own = own || f.Name != "help" && f.Name != "version" })
	return own
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString("\nCommands:\n")
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			fmt.Fprintf(b, "  %-12s %s\n", c.Name(), c.Short)
		}
	}
	fmt.Fprintf(b, "\n%s COMMAND --help explains one of them.\n", cmd.CommandPath())
}

// splitFlags separates what most people need from the rest. --help itself needs no explanation.
func splitFlags(cmd *cobra.Command) (mainFlags, moreFlags []*pflag.Flag) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		v, isSetting := f.Value.(*settingValue)
		switch {
		case f.Hidden || f.Name == "help" || f.Name == "version": // people try them unasked
		case isSetting && cmd.Annotations[flagsElsewhere] != "":
		case isSetting && !v.entry.Main, f.Annotations[moreFlag] != nil:
			moreFlags = append(moreFlags, f)
		default:
			mainFlags = append(mainFlags, f)
		}
	})
	return mainFlags, moreFlags
}

func writeFlags(b *strings.Builder, title string, flags []*pflag.Flag) {
	if len(flags) == 0 {
		return
	}
	b.WriteString("\n" + title + ":\n")
	heads := make([]string, len(flags))
	column := 0
	for i, f := range flags {
		heads[i] = strings.TrimRight("  --"+f.Name+" "+valueName(f), " ")
		if f.Shorthand != "" {
			heads[i] = strings.Replace(heads[i], "--", "-"+f.Shorthand+", --", 1)
		}
		column = max(column, len(heads[i])+2)
	}
	for i, f := range flags {
		lines := wrap(describe(f), helpWidth-column)
		fmt.Fprintf(b, "%-*s%s\n", column, heads[i], lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(b, "%*s%s\n", column, "", line)
		}
	}
}

func valueName(f *pflag.Flag) string {
	switch t := f.Value.Type(); t {
	case "bool":
		return ""
	case "string":
		return "FILE"
	case "duration":
		return "DURATION"
	default:
		return t
	}
}

func describe(f *pflag.Flag) string {
	if f.DefValue == "" || f.DefValue == "false" {
		return f.Usage
	}
	return f.Usage + " (default " + f.DefValue + ")"
}

// wrap breaks a text at spaces into lines of at most width characters, if its words allow that.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func paragraph(text string) string { return strings.Join(wrap(text, helpWidth), "\n") + "\n" }

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if strings.TrimSpace(line) != "" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
