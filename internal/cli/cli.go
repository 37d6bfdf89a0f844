// Package cli is the freshet command: what people type, what they read, and what scripts get back.
//
// Process state (arguments, environment, streams, signals) is passed in, so a test can run the whole program inside
// itself. The package deliberately knows no rules of the service: it turns words into calls of the packages below
// and errors into one line and an exit code. Data goes to stdout, everything else to stderr.
//
// Main may run several times in one process, also at the same time.
package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// Main runs one command line, without the program's name, and returns its exit code. It returns when the command
// is done, or soon after ctx ends.
func Main(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	args = joinSwitches(args)
	p := &process{args: args, env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(p)
	root.SetArgs(args) // never nil, which would mean os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return report(stderr, root.ExecuteContext(ctx))
}

// process is what a command may know of the process it runs in.
type process struct {
	// Static after Main made it.
	args           []string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// variable reads the environment that was passed in; the last of several settings wins, as in a process.
func (p *process) variable(name string) string {
	value := ""
	for _, pair := range p.env {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			value = v
		}
	}
	return value
}

func init() { cobra.EnableCommandSorting = false }

func newRoot(p *process) *cobra.Command {
	root := &cobra.Command{
		Use:   "freshet",
		Short: "Real-time data distribution over Server-Sent Events",
		Long: `Freshet distributes live JSON documents to many readers. Publishers post documents; subscribers get one
snapshot and then only what changed, as Server-Sent Events.`,
		Example: `# Start everything on this machine, with data in ./freshet-data
freshet serve

# See it at work, with live data and nothing to set up
freshet demo

# Follow a topic in the terminal
freshet tail TOPIC`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE:              helpOrUnknown,
	}
	// In the order in which people need them, which is the order of --help.
	root.AddCommand(newServe(p), newDemo(p),
		newLogin(p), newLogout(p), newContext(p),
		newUsers(p), newApps(p), newTopics(p), newKeys(p),
		newPublish(p), newTail(p), newBench(p), newExplain(p), newGateway(p),
		newConfig(p), newSecrets(p), newHealthcheck(p), newActivation(p), newVersion(), newCompletion(), newMan())
	root.Version = readBuild().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(newHelp())
	root.SetHelpFunc(help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, nil); return nil })
	root.SetFlagErrorFunc(flagError)
	return root
}

// helpOrUnknown is what a command that only groups others does: alone it explains itself.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		help(cmd, nil)
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	text := quote(args[0]) + " is not a command of " + cmd.CommandPath()
	if near := settings.Nearest(args[0], names); near != "" {
		text += "; did you mean " + near + "?"
	}
	return &failure{error: freshet.Errorf(freshet.Invalid, "%s", text), hint: cmd.CommandPath() + " --help lists the commands"}
}

// noArguments refuses words that a command would silently ignore.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(cmd, "%s takes flags only, but got %s", cmd.CommandPath(), quote(args[0]))
}
