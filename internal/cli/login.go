package cli

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

func newLogin(p *process) *cobra.Command {
	var email string
	fromStdin := false
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Sign in to a server and remember it",
		Long: `Sign in to a server. Its address and the session are kept as a context, in a file that only you can read, and
become what the other commands use. The password is asked for, and not kept.`,
		Example: `# The server on this machine
freshet login --email ada@example.com

# Another one, under a name of its own
freshet login --server https://freshet.example.com --context production

# From a script
freshet login --email ada@example.com --password-stdin < password.txt`,
		Args: noArguments,
	}
	addText(cmd.Flags(), &email, "email", "EMAIL", "Who you are; asked for if left out")
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "Read the password from the first line of stdin")
	r := addRemote(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return login(cmd, r, email, fromStdin)
	}
	return cmd
}

func login(cmd *cobra.Command, r *remote, email string, fromStdin bool) error {
	p := r.p
	known, err := p.loadContexts()
	if err != nil {
		return err
	}
	name := r.context
	r.context = "" // here it names the context to make, which need not exist
	if _, exists := known.Servers[name]; exists && r.server == "" {
		r.context = name
	}
	s, err := r.resolve()
	if err != nil {
		return err
	}
	if email == "" {
		email = s.Email
	}
	who, password, err := p.credentials(cmd.Context(), cmd, email, fromStdin)
	if err != nil {
		return err
	}
	s.Token = ""
	c, err := s.client()
	if err != nil {
		return err
	}
	session, err := c.SignIn(cmd.Context(), who, password)
	if err != nil {
		if client.StatusOf(err) == 401 {
			return freshet.Errorf(freshet.Unauthenticated, "%s refuses this e-mail and password", c.BaseURL())
		}
		return told(err)
	}
	if name == "" {
		name = contextName(c.BaseURL())
	}
	s.Server, s.Email, s.UserID = c.BaseURL(), who, session.UserID()
	s.Token, s.ExpiresAt = freshet.Secret(session.Token), session.ExpiresAt
	known.put(name, s)
	known.Current = name
	if err := p.saveContexts(known); err != nil {
		return err
	}
	p.done("Signed in to %s as %s until %s; context %s", c.BaseURL(), who, when(session.ExpiresAt), name)
	return nil
}

// contextName calls a server by its host.
func contextName(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return "default"
	}
	if port := u.Port(); port != "" && port != "8000" {
		return u.Hostname() + "-" + port
	}
	return u.Hostname()
}

// credentials asks for what is missing, on the terminal and without showing the password.
func (p *process) credentials(ctx context.Context, cmd *cobra.Command, email string, fromStdin bool) (who, password string, err error) {
	in := bufio.NewReader(p.stdin)
	if fromStdin {
		if email == "" {
			return "", "", usage(cmd, "--password-stdin needs --email too")
		}
		password, err = passwordLine(in)
		return email, password, err
	}
	fd, err := p.terminal(cmd, "--password-stdin")
	if err != nil {
		return "", "", err
	}
	if email == "" {
		if email, err = p.askLine(ctx, in, "E-mail: "); err != nil {
			return "", "", err
		}
	}
	password, err = p.askSecret(ctx, fd, "Password: ")
	return email, password, err
}

// passwordLine reads a password that stands on a line of its own.
func passwordLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil && line == "" {
		return "", freshet.Errorf(freshet.Invalid, "there is no password on stdin")
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// terminal is where people are asked; who has none is told which flag to use.
func (p *process) terminal(cmd *cobra.Command, flag string) (fd int, err error) {
	terminal, ok := p.stdin.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return 0, usage(cmd, "there is no terminal to ask for the password; use %s", flag)
	}
	return int(terminal.Fd()), nil
}

func (p *process) askLine(ctx context.Context, in *bufio.Reader, prompt string) (string, error) {
	_, _ = io.WriteString(p.stderr, prompt)
	line, err := unlessCancelled(ctx, func() (string, error) { return in.ReadString('\n') })
	if err != nil {
		return "", freshet.Errorf(freshet.Invalid, "nothing was entered")
	}
	return strings.TrimSpace(line), nil
}

// askSecret asks only once the terminal has stopped showing what is typed.
func (p *process) askSecret(ctx context.Context, fd int, prompt string) (string, error) {
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	asker := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{p.stdin, p.stderr}, "")
	secret, err := unlessCancelled(ctx, func() (string, error) { return asker.ReadPassword(prompt) })
	_ = term.Restore(fd, before) // also after Ctrl-C the terminal must show again what is typed
	if err != nil {
		return "", freshet.Errorf(freshet.Invalid, "no password was entered")
	}
	return secret, nil
}

// unlessCancelled leaves a read behind that nobody can interrupt; the process is about to end then.
func unlessCancelled[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := read()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func newLogout(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "End the session and forget it",
		Long: `End the session of the current context on the server, and forget its token. The context itself stays, so that
freshet login knows where to sign in again.`,
		Example: `# The current context
freshet logout

# Another one
freshet logout --context production

# Forget the server as well
freshet context delete production`,
		Args: noArguments,
	}
	r := addRemote(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		known, err := p.loadContexts()
		if err != nil {
			return err
		}
		name := firstOf(r.context, p.variable(contextVariable), known.Current)
		s, err := known.pick(name)
		if err != nil {
			return err
		}
		if s.Token == "" {
			return freshet.Errorf(freshet.NotFound, "you are not signed in")
		}
		c, err := s.client()
		if err != nil {
			return err
		}
		ended := c.SignOut(cmd.Context())
		s.Token = ""
		known.put(name, s)
		if err := p.saveContexts(known); err != nil {
			return err
		}
		if ended != nil && client.StatusOf(ended) != 401 { // a session that is over already needs no end
			return &failure{error: told(ended), hint: "the token is forgotten here, but the server may accept it until it expires"}
		}
		p.done("Signed out of %s", c.BaseURL())
		return nil
	}
	return cmd
}
