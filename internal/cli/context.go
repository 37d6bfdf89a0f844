package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
)

func newContext(p *process) *cobra.Command {
	return group("context", "Switch between servers",
		`Switch between the servers that you signed in to. A context is the address of a server and a session there;
commands use the current one unless --context or --server names another.`,
		`# Which are there, and which is current
freshet context list

# Use another one from now on
freshet context use production

# Use another one once
freshet topics list --context production`,
		newContextList(p), newContextUse(p), newContextShow(p), newContextDelete(p))
}

// shownContext is a context without its token.
type shownContext struct {
	Name       string `json:"name"`
	Current    bool   `json:"current"`
	Server     string `json:"server"`
	Subscriber string `json:"subscriber,omitempty"`
	Admin      string `json:"admin,omitempty"`
	Email      string `json:"email,omitempty"`
	SignedIn   bool   `json:"signed_in"`
	ExpiresAt  string `json:"expires_at,omitempty"`
}

func (c *contexts) show(name string) shownContext {
	s := c.Servers[name]
	shown := shownContext{Name: name, Current: name == c.Current, Server: s.Server, Subscriber: s.Subscriber,
		Admin: s.Admin, Email: s.Email, SignedIn: s.Token != ""}
	if shown.SignedIn && !s.ExpiresAt.IsZero() {
		shown.ExpiresAt = s.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
	}
	return shown
}

func newContextList(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the contexts",
		Long:  `List the contexts. A star marks the current one.`,
		Example: `# For people
freshet context list

# For scripts
freshet context list -o json

# Only the names
freshet context list -o json | jq -r '.[].name'`,
		Args: noArguments,
	}
	out := addOutput(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(cmd); err != nil {
			return err
		}
		known, err := p.loadContexts()
		if err != nil {
			return err
		}
		all := []shownContext{}
		var rows [][]string
		for _, name := range known.names() {
			c := known.show(name)
			all = append(all, c)
			mark, session := "", "signed out"
			if c.Current {
				mark = "*"
			}
			if c.SignedIn {
				session = "until " + when(known.Servers[name].ExpiresAt)
			}
			rows = append(rows, []string{mark, c.Name, c.Server, c.Email, session})
		}
		return out.rows(all, []string{"", "NAME", "SERVER", "E-MAIL", "SESSION"}, rows, "No contexts yet; freshet login makes one.")
	}
	return cmd
}

// completeContexts offers the names of contexts for the first word.
func completeContexts(p *process) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		known, _ := p.loadContexts() // without them there is nothing to offer
		return known.names(), cobra.ShellCompDirectiveNoFileComp
	}
}

func newContextUse(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Make a context the current one",
		Long:  `Make a context the one that commands use when they are told nothing else.`,
		Example: `# From now on
freshet context use production

# For one command
freshet apps list --context production

# For one shell
export FRESHET_CLI_CONTEXT=production`,
		Args:              takes,
		ValidArgsFunction: completeContexts(p),
		RunE: func(_ *cobra.Command, args []string) error {
			known, err := p.loadContexts()
			if err != nil {
				return err
			}
			if _, ok := known.Servers[args[0]]; !ok {
				return known.unknown(args[0])
			}
			known.Current = args[0]
			if err := p.saveContexts(known); err != nil {
				return err
			}
			p.done("Using %s (%s)", args[0], known.Servers[args[0]].Server)
			return nil
		},
	}
}

func newContextShow(p *process) *cobra.Command {
	showToken := false
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context",
		Long:  `Show a context, by default the current one. The token stays hidden unless --show-token asks for nothing else.`,
		Example: `# The current one
freshet context show

# Another one, for a script
freshet context show production -o json

# A token for curl
curl -H "Authorization: Bearer $(freshet context show --show-token)" \
  http://localhost:8000/api/v1/apps`,
		Args:              takes,
		ValidArgsFunction: completeContexts(p),
	}
	out := addOutput(p, cmd)
	cmd.Flags().BoolVar(&showToken, "show-token", false, "Print the session token and nothing else")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.check(cmd); err != nil {
			return err
		}
		known, err := p.loadContexts()
		if err != nil {
			return err
		}
		name := firstOf(argument(args, 0), p.variable(contextVariable), known.Current)
		if name == "" {
			return &failure{error: freshet.Errorf(freshet.NotFound, "there is no current context"), hint: "freshet login makes one"}
		}
		s, err := known.pick(name)
		if err != nil {
			return err
		}
		if showToken {
			if s.Token == "" {
				return &failure{error: freshet.Errorf(freshet.Unauthenticated, "%s has no session", name), hint: "freshet login signs in"}
			}
			_, err := fmt.Fprintln(p.stdout, s.Token.Reveal())
			return err
		}
		c, err := s.client()
		if err != nil {
			return err
		}
		session := "signed out"
		if s.Token != "" {
			session = "until " + when(s.ExpiresAt)
		}
		return out.facts(known.show(name), [][]string{
			{"Name", name}, {"Server", c.BaseURL()}, {"Subscriber", c.SubscriberURL()}, {"Administration", c.AdminURL()},
			{"E-mail", s.Email}, {"Session", session},
		})
	}
	return cmd
}

func newContextDelete(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Forget a server",
		Long:  `Forget a server and its token. The session itself goes on until it expires; freshet logout ends it.`,
		Example: `# Forget it
freshet context delete production

# End its session first
freshet logout --context production && freshet context delete production

# Which are there
freshet context list`,
		Args:              takes,
		ValidArgsFunction: completeContexts(p),
		RunE: func(_ *cobra.Command, args []string) error {
			known, err := p.loadContexts()
			if err != nil {
				return err
			}
			if _, ok := known.Servers[args[0]]; !ok {
				return known.unknown(args[0])
			}
			delete(known.Servers, args[0])
			if known.Current == args[0] {
				known.Current = ""
			}
			return p.saveContexts(known)
		},
	}
}
