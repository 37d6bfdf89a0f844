package cli

import (
	"bufio"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
)

func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "Do not ask")
}

// confirm asks before something is lost. Without somebody to ask, only --yes will do: a script must say what it means.
func (k *call) confirm(yes bool, question string) error {
	p := k.out.p
	if yes {
		return nil
	}
	if !isTerminal(p.stdin) {
		return usage(k.cmd, "nobody is there to confirm; --yes does it without asking")
	}
	answer, err := p.askLine(k.ctx, bufio.NewReader(p.stdin), question+" [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return freshet.Errorf(freshet.Invalid, "nothing was deleted")
}
