package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newGateway(p *process) *cobra.Command {
	return group("gateway", "Administer the gateway",
		`Administer the gateway: which APIs it serves, what its plugins do with their calls, and who may call them. The
administration is on a listener of its own, which is not public: run this where it can be reached, or name it with --admin.`,
		`# Serve an upstream at /quotes
freshet gateway apis create quotes --upstream http://10.0.0.5:9000 --path /quotes

# Allow 100 calls a minute
freshet gateway plugins add quotes rate-limiting minute=100

# Somebody with a key
freshet gateway consumers create ada && freshet gateway keys add ada`,
		newGatewayAPIs(p), newGatewayPlugins(p), newGatewayConsumers(p), newGatewayKeys(p))
}

func milliTime(ms int64) string {
	if ms == 0 {
		return ""
	}
	return when(time.UnixMilli(ms))
}

// administering is command for verbs of the gateway: its administration knows no users.
func (v verb) administering(p *process) *cobra.Command {
	v.anonymous = true
	return v.command(p)
}

// asking is administering for verbs that cannot be undone. The question names the first argument.
func (v verb) asking(p *process, question string) *cobra.Command {
	yes, act := false, v.run
	v.flags = func(cmd *cobra.Command) { addYes(cmd, &yes) }
	v.run = func(k *call) error {
		if err := k.confirm(yes, fmt.Sprintf(question, plain(k.args[0]))); err != nil {
			return err
		}
		return act(k)
	}
	return v.administering(p)
}

// thing asks for one and shows it.
func thing[T any](show func(*call, *T) error, ask func(*call) (*T, error)) func(*call) error {
	return func(k *call) error {
		one, err := ask(k)
		if err != nil {
			return err
		}
		return show(k, one)
	}
}

// table asks for all and shows a row of each.
func table[T any](columns []string, none string, ask func(*call) ([]T, error), row func(*T) []string) func(*call) error {
	return func(k *call) error {
		all, err := ask(k)
		if err != nil {
			return err
		}
		var rows [][]string
		for i := range all {
			rows = append(rows, row(&all[i]))
		}
		return k.out.rows(orEmpty(all), columns, rows, none)
	}
}
