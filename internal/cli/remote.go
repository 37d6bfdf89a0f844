package cli

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/subscribe"
)

// The variables of commands that talk to a server. Flags win over them, and they win over the context.
const (
	configVariable  = settings.ClientPrefix + "CONFIG"  // the file of contexts
	contextVariable = settings.ClientPrefix + "CONTEXT" // the context to use
	serverVariable  = settings.ClientPrefix + "SERVER"
	tokenVariable   = settings.ClientPrefix + "TOKEN"

	subscriberVariable = settings.ClientPrefix + "SUBSCRIBER"
	adminVariable      = settings.ClientPrefix + "ADMIN"
)

// remote is the server that a command talks to, as far as the command line says.
type remote struct {
	p                                         *process
	server, subscriber, admin, token, context string
}

// textFlag is a flag whose value --help calls by what it is.
type textFlag struct {
	text        *string
	placeholder string
}

func (f *textFlag) String() string {
	if f.text == nil {
		return ""
	}
	return *f.text
}
func (f *textFlag) Type() string          { return f.placeholder }
func (f *textFlag) Set(text string) error { *f.text = text; return nil }

func addText(flags *pflag.FlagSet, at *string, name, placeholder, help string) *pflag.Flag {
	return flags.VarPF(&textFlag{at, placeholder}, name, "", help)
}

// addRemote gives a command the flags that say which server is meant.
func addRemote(p *process, cmd *cobra.Command) *remote {
	r := &remote{p: p}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, f := range []*pflag.Flag{
		addText(flags, &r.context, "context", "NAME", "Use this context instead of the current one"),
		addText(flags, &r.server, "server", "URL", "The server's gateway, such as http://localhost:8000"),
		addText(flags, &r.subscriber, "subscriber", "URL", "The server's subscriber interface; by default port 6080 of the same host"),
		addText(flags, &r.admin, "admin", "URL", "The server's gateway administration; by default port 8001 of the same host"),
		addText(flags, &r.token, "token", "TOKEN", "A session token; a variable is safer: "+tokenVariable),
	} {
		f.Annotations = map[string][]string{moreFlag: {}}
	}
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		known, _ := p.loadContexts()
		return known.names(), cobra.ShellCompDirectiveNoFileComp
	})
	return r
}

// resolve fills in what the command line leaves open: variables, then the context, then a server on this machine.
func (r *remote) resolve() (host, error) {
	known, err := r.p.loadContexts()
	if err != nil {
		return host{}, err
	}
	name := firstOf(r.context, r.p.variable(contextVariable))
	address := strings.TrimRight(firstOf(r.server, r.p.variable(serverVariable)), "/")
	if name == "" && address != "" {
		name = known.at(address)
	}
	s := host{Server: address}
	if name != "" || address == "" {
		if s, err = known.pick(name); err != nil {
			return host{}, err
		}
	}
	if address != "" && address != s.Server {
		s = host{Server: address} // a token is for one server only
	}
	s.Subscriber = firstOf(r.subscriber, r.p.variable(subscriberVariable), s.Subscriber)
	s.Admin = firstOf(r.admin, r.p.variable(adminVariable), s.Admin)
	s.Token = freshet.Secret(firstOf(r.token, r.p.variable(tokenVariable), s.Token.Reveal()))
	return s, nil
}

// client returns a client of the server.
func (r *remote) client() (*client.Client, error) {
	s, err := r.resolve()
	if err != nil {
		return nil, err
	}
	return s.client()
}

func (s *host) client() (*client.Client, error) {
	c, err := client.New(client.Options{
		BaseURL: s.Server, SubscriberURL: s.Subscriber, AdminURL: s.Admin, Token: s.Token.Reveal(),
		UserAgent: "freshet/" + readBuild().Version,
	})
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "client: ")
		text = strings.NewReplacer("BaseURL", "--server", "SubscriberURL", "--subscriber", "AdminURL", "--admin").Replace(text)
		return nil, freshet.Errorf(freshet.Invalid, "%s", text)
	}
	return c, nil
}

// signedIn returns a client that has a token, or says how to get one.
func (r *remote) signedIn() (*client.Client, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	if c.Token() == "" {
		return nil, &failure{
			error: freshet.Errorf(freshet.Unauthenticated, "you are not signed in to %s", c.BaseURL()),
			hint:  "freshet login signs in",
		}
	}
	return c, nil
}

// kinds is the table from the status of an answer to a kind of failure, for exit codes.
var kinds = map[int]freshet.Kind{
	http.StatusBadRequest:            freshet.Invalid,
	http.StatusUnauthorized:          freshet.Unauthenticated,
	http.StatusForbidden:             freshet.Forbidden,
	http.StatusNotFound:              freshet.NotFound,
	http.StatusMethodNotAllowed:      freshet.MethodNotAllowed,
	http.StatusConflict:              freshet.Conflict,
	http.StatusPreconditionFailed:    freshet.PreconditionFailed,
	http.StatusRequestEntityTooLarge: freshet.TooLarge,
	http.StatusUnsupportedMediaType:  freshet.UnsupportedMedia,
	http.StatusTooManyRequests:       freshet.TooManyRequests,
	http.StatusBadGateway:            freshet.Unavailable,
	http.StatusServiceUnavailable:    freshet.Unavailable,
	http.StatusGatewayTimeout:        freshet.Timeout,
	http.StatusInsufficientStorage:   freshet.DocumentLimit,
}

// told turns what the client says into an error for people, with a hint where there is something to do.
func told(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*client.UnreachableError](err); ok {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return &failure{
			error: freshet.Wrap(freshet.Unavailable, e.Err, "no answer from "+e.URL),
			hint:  "is the server running? --server names another, freshet context list shows those you know",
		}
	}
	if e, ok := errors.AsType[*client.StreamError](err); ok {
		code, _ := subscribe.CodeOf(e.Code)
		return &failure{error: freshet.Errorf(code.Kind, "%s (%d)", e.Message, e.Code), hint: streamHints[code.Kind]}
	}
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	kind := kinds[e.Status]
	hint := hints[kind]
	if e.Status == http.StatusForbidden {
		hint = "" // whoever signed in may still not do it; the message says why
	}
	return &failure{error: &freshet.Error{Kind: kind, Msg: e.Message, Fields: e.Fields, RetryAfter: e.RetryAfter}, hint: hint}
}

// toldBy is told where the client may have asked another address of the server than its gateway, which another flag names.
func toldBy(c *client.Client, err error) error {
	text := told(err)
	e, isUnreachable := errors.AsType[*client.UnreachableError](err)
	f, ok := errors.AsType[*failure](text)
	if !isUnreachable || !ok {
		return text
	}
	for flag, url := range map[string]string{"--subscriber": c.SubscriberURL(), "--admin": c.AdminURL()} {
		if e.URL == url && url != c.BaseURL() {
			f.hint = "is the server running? " + flag + " names another address, freshet context list shows the servers you know"
		}
	}
	return text
}

var hints = map[freshet.Kind]string{
	freshet.Unauthenticated: "freshet login signs in; --key brings a key of your own",
	freshet.TooManyRequests: "wait a little, or ask the server's admin for a higher quota",
	freshet.TooLarge:        "the server's setting publish.max_body is the limit",
}

var streamHints = map[freshet.Kind]string{
	freshet.Unauthenticated:     "--key brings the app's subscriber key; signed in, it is found by itself",
	freshet.MalformedCredential: "--key takes the app's subscriber key; freshet keys show APP shows it",
	freshet.UnknownCredential:   "freshet keys show APP shows the key in use",
	freshet.RevokedCredential:   "freshet keys show APP shows the key in use",
	freshet.TopicNotFound:       "freshet topics list shows yours",
}
