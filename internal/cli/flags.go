package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/freshet-io/freshet/internal/settings"
)

// addSettings gives a command a flag for each of the settings that want accepts, and --config.
//
// Flags that do not exist are let through here and reported by load, together with everything else that is wrong.
func addSettings(cmd *cobra.Command, want func(*settings.Entry) bool) {
	cmd.FParseErrWhitelist.UnknownFlags = true
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.String(settings.ConfigFlag, "", "Read settings from this YAML file")
	_ = cmd.MarkFlagFilename(settings.ConfigFlag, "yaml", "yml")
	for _, e := range settings.Entries() {
		if want(&e) {
			addSetting(cmd, flags, &e)
		}
	}
}

func addSetting(cmd *cobra.Command, flags *pflag.FlagSet, e *settings.Entry) {
	f := flags.VarPF(&settingValue{entry: e, text: e.Default}, e.Flag(), "", e.Help)
	if choices := e.Choices(); len(choices) > 0 {
		if choices[0] == "true" {
			f.NoOptDefVal = "true"
		}
		_ = cmd.RegisterFlagCompletionFunc(e.Flag(), cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	}
	if e.Placeholder() == "DIR" {
		_ = cmd.MarkFlagDirname(e.Flag())
	}
}

func everySetting(*settings.Entry) bool { return true }

// settingValue keeps the text of a flag; what it means is for the settings package to judge, which knows all
// layers and reports all faults at once.
type settingValue struct {
	entry *settings.Entry
	text  string
	given bool
}

func (v *settingValue) String() string { return v.text }
func (v *settingValue) Type() string   { return v.entry.Placeholder() }

// Set adds to a list when the flag is repeated, as people expect of --roles publish --roles poll.
func (v *settingValue) Set(text string) error {
	if v.given && v.entry.IsList() {
		text = v.text + "," + text
	}
	v.text, v.given = text, true
	return nil
}

// load reads all layers for a command that has the flags of addSettings.
func (p *process) load(cmd *cobra.Command) (*settings.Effective, error) {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(*settingValue); ok {
			given[f.Name] = f.Value.String()
		}
	})
	file, err := cmd.Flags().GetString(settings.ConfigFlag)
	if err != nil {
		return nil, err
	}
	return settings.Load(settings.Sources{
		File:    file,
		Environ: p.env,
		Flags:   given,
		Unknown: unknownFlags(cmd.Flags(), p.args),
	})
}

// joinSwitches lets people write --poller-deny-private true, as --help shows it: the parser takes the value of a switch only
// behind an equals sign, since a switch may also stand alone.
func joinSwitches(args []string) []string {
	joined := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if i+1 < len(args) && isSwitch(args[i]) && (args[i+1] == "true" || args[i+1] == "false") {
			joined = append(joined, args[i]+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
}

func isSwitch(arg string) bool {
	for _, e := range settings.Entries() {
		if choices := e.Choices(); len(choices) > 0 && choices[0] == "true" && arg == "--"+e.Flag() {
			return true
		}
	}
	return false
}

// unknownFlags finds what the parser was told to ignore. It walks the arguments as the parser does: the word after
// a flag that takes a value is that value, whatever it looks like.
func unknownFlags(known *pflag.FlagSet, args []string) []string {
	var unknown []string
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		if len(name) < 2 || name[0] != '-' {
			continue
		}
		f := known.Lookup(strings.TrimPrefix(name, "--"))
		if name[1] != '-' {
			f = known.ShorthandLookup(name[1:2])
		}
		switch {
		case f == nil:
			unknown = append(unknown, name)
		case f.NoOptDefVal == "" && !hasValue:
			i++
		}
	}
	return unknown
}

// flagError replaces the parser's messages.
func flagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usage(cmd, "--%s needs a value, as in --%s %s", missing.GetFlag().Name, missing.GetFlag().Name, missing.GetFlag().Value.Type())
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage(cmd, "%v", err)
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return usage(cmd, "-%s is not a flag of %s", name, cmd.CommandPath())
	}
	if slices.Contains(settings.Flags(), name) {
		return usage(cmd, "--%s is a flag of freshet serve, not of %s", name, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := settings.Nearest(name, names); near != "" {
		return usage(cmd, "--%s is not a flag of %s; did you mean --%s?", name, cmd.CommandPath(), near)
	}
	return usage(cmd, "--%s is not a flag of %s", name, cmd.CommandPath())
}
