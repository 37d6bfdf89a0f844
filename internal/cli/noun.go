package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

// call is one run of a command that talks to the management API: who asks, what was typed, where the answer goes.
type call struct {
	ctx  context.Context
	cmd  *cobra.Command
	c    *client.Client
	out  *output
	args []string
}

// given reports whether a flag was set on the command line.
func (k *call) given(flag string) bool { return k.cmd.Flags().Changed(flag) }

// verb describes a command that talks to the management API.
type verb struct {
	use, short, long, example string
	flags                     func(cmd *cobra.Command) // its own; may be nil
	complete                  func(context.Context, *client.Client) []string
	anonymous                 bool // works without a session
	run                       func(k *call) error
}

// command makes it a command with the flags that all of them have.
func (v verb) command(p *process) *cobra.Command {
	cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example, Args: takes}
	cmd.Flags().SortFlags = false
	if v.flags != nil {
		v.flags(cmd)
	}
	out := addOutput(p, cmd)
	r := addRemote(p, cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if v.complete != nil {
		cmd.ValidArgsFunction = complete(r, v.complete)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.check(cmd); err != nil {
			return err
		}
		open := r.signedIn
		if v.anonymous {
			open = r.client
		}
		c, err := open()
		if err != nil {
			return err
		}
		defer c.CloseIdleConnections()
		return toldBy(c, v.run(&call{ctx: cmd.Context(), cmd: cmd, c: c, out: out, args: args}))
	}
	return cmd
}

// setIf sets a member of a change if its flag was given.
func setIf[T any](k *call, flag string, v T) (member client.Value[T]) {
	if k.given(flag) {
		return client.Set(v)
	}
	return member
}
