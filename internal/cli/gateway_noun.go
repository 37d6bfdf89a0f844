package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/client"
)

// administered is a kind of thing that the gateway's administration keeps. Its commands differ in what they say only.
type administered[T any] struct {
	fields  []fieldFlag // the first is what create is given as its argument
	facts   func(k *call, one *T) [][]string
	columns []string
	row     func(*T) []string
	none    string // said in place of an empty list

	create func(*client.Gateway, context.Context, client.Fields) (*T, error)
	list   func(*client.Gateway, context.Context) ([]T, error)
	one    func(g *client.Gateway, ctx context.Context, name string) (*T, error)
	update func(g *client.Gateway, ctx context.Context, name string, f client.Fields) (*T, error)
	remove func(g *client.Gateway, ctx context.Context, name string) error
}

// fieldFlag is a field that a flag sets: a text, or yes or no where there is no placeholder.
type fieldFlag struct{ flag, field, placeholder, help string }

func (f *fieldFlag) add(cmd *cobra.Command) {
	if f.placeholder == "" {
		cmd.Flags().Bool(f.flag, false, f.help)
		return
	}
	addText(cmd.Flags(), new(string), f.flag, f.placeholder, f.help)
}

// given are the fields whose flags were given.
func given(k *call, all []fieldFlag) client.Fields {
	fields := client.Fields{}
	for _, f := range all {
		if !k.given(f.flag) {
			continue
		}
		text := k.cmd.Flags().Lookup(f.flag).Value.String()
		if f.placeholder == "" {
			fields[f.field] = text == "true"
		} else {
			fields[f.field] = text
		}
	}
	return fields
}

func addAll(all []fieldFlag) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		for i := range all {
			all[i].add(cmd)
		}
	}
}

// commands makes the five. The question is asked before anything is deleted.
func (a *administered[T]) commands(p *process, create, list, show, update, remove verb, question string) []*cobra.Command {
	shown := func(k *call, one *T) error { return k.out.facts(one, a.facts(k, one)) }
	create.flags = addAll(a.fields[1:])
	create.run = thing(shown, func(k *call) (*T, error) {
		fields := given(k, a.fields[1:])
		fields[a.fields[0].field] = k.args[0]
		return a.create(k.c.Gateway(), k.ctx, fields)
	})
	list.run = table(a.columns, a.none, func(k *call) ([]T, error) { return a.list(k.c.Gateway(), k.ctx) }, a.row)
	show.run = thing(shown, func(k *call) (*T, error) { return a.one(k.c.Gateway(), k.ctx, k.args[0]) })
	update.flags = addAll(a.fields)
	update.run = thing(shown, func(k *call) (*T, error) {
		return a.update(k.c.Gateway(), k.ctx, k.args[0], given(k, a.fields))
	})
	remove.run = func(k *call) error { return a.remove(k.c.Gateway(), k.ctx, k.args[0]) }
	return []*cobra.Command{create.administering(p), list.administering(p), show.administering(p), update.administering(p), remove.asking(p, question)}
}
