package cli

import (
	"bufio"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

func newUsers(p *process) *cobra.Command {
	return group("users", "Make and manage users",
		`Make and manage users. USER is an id, an e-mail for admins, or me.`,
		`# Sign up on the server of this machine
freshet users create ada@example.com --first-name Ada --last-name Lovelace

# Who you are
freshet users show me

# For admins: everybody, and an end to one account's streams
freshet users list && freshet users update bob@example.com --status disabled`,
		newUserCreate(p), newUserList(p), newUserShow(p), newUserUpdate(p), newUserDelete(p))
}

// userFlags are what a user may change.
type userFlags struct {
	email, first, last, language string
	passwordStdin                bool
}

func (f *userFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	addText(flags, &f.first, "first-name", "NAME", "First name")
	addText(flags, &f.last, "last-name", "NAME", "Last name")
	addText(flags, &f.language, "language", "LOCALE", "Language, a locale like fr_FR")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "Read the password from the first line of stdin")
}

func newUserCreate(p *process) *cobra.Command {
	f := userFlags{language: "en_GB"}
	return verb{
		use: "create EMAIL", short: "Sign somebody up",
		long: `Make a user. The password is asked for, or read from stdin. Servers may leave this to admins.`,
		example: `# It asks for the password
freshet users create ada@example.com --first-name Ada --last-name Lovelace

# From a script
freshet users create ada@example.com --first-name Ada --last-name Lovelace --password-stdin < file

# And sign in
freshet login --email ada@example.com`,
		anonymous: true,
		flags:     f.add,
		run: func(k *call) error {
			_, password, err := k.out.p.credentials(k.ctx, k.cmd, k.args[0], f.passwordStdin)
			if err != nil {
				return err
			}
			user, err := k.c.CreateUser(k.ctx, client.NewUser{
				Email: k.args[0], Password: password, FirstName: f.first, LastName: f.last, Language: f.language,
			})
			if err != nil {
				return err
			}
			return showUser(k, user)
		},
	}.command(p)
}

func newUserList(p *process) *cobra.Command {
	return verb{
		use: "list [QUERY]", short: "Find users, for admins",
		long: `Find the users whose e-mail or name contains a text, in any case; all of them without one. For admins only.`,
		example: `# Everybody
freshet users list

# Some
freshet users list example.com

# Who is disabled
freshet users list -o json | jq -r '.[] | select(.status == "disabled").email'`,
		run: func(k *call) error {
			all, err := client.Collect(k.c.FindUsers(k.ctx, argument(k.args, 0)))
			if err != nil {
				return adminsOnly(err)
			}
			var rows [][]string
			for _, u := range all {
				rows = append(rows, []string{u.ID, u.Email, strings.TrimSpace(u.FirstName + " " + u.LastName), u.Role, u.Status, when(u.CreatedAt)})
			}
			return k.out.rows(orEmpty(all), []string{"ID", "E-MAIL", "NAME", "ROLE", "STATUS", "CREATED"}, rows, "Nobody.")
		},
	}.command(p)
}

// adminsOnly explains why something is not there.
func adminsOnly(err error) error {
	if client.StatusOf(err) == 404 {
		return &failure{error: freshet.Errorf(freshet.Unauthenticated, "only admins may do this"), hint: "sign in as one: freshet login"}
	}
	return err
}

// findUser takes an id, "me", or, for admins, an e-mail.
func findUser(k *call, who string) (*client.User, error) {
	if who == "me" {
		id, err := k.self()
		if err != nil {
			return nil, err
		}
		who = id
	}
	if !strings.Contains(who, "@") {
		return k.c.User(k.ctx, who)
	}
	for u, err := range k.c.FindUsers(k.ctx, who) {
		if err != nil {
			return nil, adminsOnly(err)
		}
		if strings.EqualFold(u.Email, who) {
			return &u, nil
		}
	}
	return nil, freshet.Errorf(freshet.NotFound, "there is no user %s", quote(who))
}

// self finds out who is signed in: the context knows, and otherwise any app's link to its owner does.
func (k *call) self() (string, error) {
	known, err := k.out.p.loadContexts()
	if err == nil {
		for _, s := range known.Servers {
			if s.Token == k.c.Token() && s.UserID != "" {
				return s.UserID, nil
			}
		}
	}
	return "", &failure{error: freshet.Errorf(freshet.Invalid, "a token alone does not say who you are"), hint: "name the user by id, or sign in with freshet login"}
}

func showUser(k *call, u *client.User) error {
	return k.out.facts(u, [][]string{
		{"Id", u.ID}, {"E-mail", u.Email}, {"First name", u.FirstName}, {"Last name", u.LastName}, {"Language", u.Language},
		{"Role", u.Role}, {"Status", u.Status},
		{"Connections", quotaText(u.Quotas.Connections)}, {"Messages a month", quotaText(u.Quotas.MessagesPerMonth)},
		{"Requests a minute", quotaText(u.Quotas.RequestsPerMinute)},
		{"Topics", quotaText(u.Quotas.Topics)}, {"Document bytes", quotaText(u.Quotas.DocumentBytes)},
		{"Created", when(u.CreatedAt)}, {"Changed", when(u.UpdatedAt)},
	})
}

func newUserShow(p *process) *cobra.Command {
	return verb{
		use: "show [USER]", short: "Show a user",
		long: `Show a user, by default yourself.`,
		example: `# Yourself
freshet users show

# Somebody else, for admins
freshet users show bob@example.com

# For a script
freshet users show me -o json`,
		run: func(k *call) error {
			user, err := findUser(k, firstOf(argument(k.args, 0), "me"))
			if err != nil {
				return err
			}
			return showUser(k, user)
		},
	}.command(p)
}

// accountFlags are what only admins may change.
type accountFlags struct {
	status string
	quotaFlags
}

// quotaFlags are the quotas among them.
type quotaFlags struct{ connections, messages, requests, topics, documentBytes quotaFlag }

func (f *quotaFlags) add(cmd *cobra.Command, requests string) {
	flags := cmd.Flags()
	flags.Var(&f.connections, "connections", "For admins: how many streams at once; 0 for any number, default for the server's")
	flags.Var(&f.messages, "messages-per-month", "For admins: how many messages in a month")
	flags.Var(&f.requests, "requests-per-minute", "For admins: how many "+requests+" in a minute")
	flags.Var(&f.topics, "topics", "For admins: how many topics")
	flags.Var(&f.documentBytes, "document-bytes", "For admins: how many bytes the newest documents may have together")
}

// change returns what an admin is asked to change; it may be nothing.
func (f *quotaFlags) change() (change client.Value[client.QuotasChange]) {
	q := client.QuotasChange{
		Connections: f.connections.Value, MessagesPerMonth: f.messages.Value, RequestsPerMinute: f.requests.Value,
		Topics: f.topics.Value, DocumentBytes: f.documentBytes.Value,
	}
	if q != (client.QuotasChange{}) {
		change = client.Set(q)
	}
	return change
}

func (f *accountFlags) add(cmd *cobra.Command) {
	addText(cmd.Flags(), &f.status, "status", "STATUS", "For admins: active or disabled, which ends tokens and streams")
	f.quotaFlags.add(cmd, "calls to the management API")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{"active", "disabled"}, cobra.ShellCompDirectiveNoFileComp))
}

// change returns what an admin is asked to change, and whether that is anything.
func (f *accountFlags) change(k *call) (change client.AccountChange, any bool) {
	change.Status = setIf(k, "status", f.status)
	change.Quotas = f.quotaFlags.change()
	return change, !change.Status.IsZero() || !change.Quotas.IsZero()
}

func newUserUpdate(p *process) *cobra.Command {
	var f userFlags
	var a accountFlags
	var passwords passwordFlags
	return verb{
		use: "update USER", short: "Change a user",
		long: `Change a user. What no flag names stays as it is. To change your own e-mail or password, your current password is asked
for; --current-password-stdin reads it. Admins may also disable an account and set its quotas.`,
		example: `# Another name
freshet users update me --last-name King

# Another password; it is asked for, and ends every session
freshet users update me --new-password

# For admins: a limit
freshet users update bob@example.com --connections 100`,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &f.email, "email", "EMAIL", "Another e-mail")
			cmd.Flags().BoolVar(&passwords.ask, "new-password", false, "Ask for another password")
			f.add(cmd)
			passwords.add(cmd)
			a.add(cmd)
		},
		run: func(k *call) error {
			change := client.UserChange{
				Email: setIf(k, "email", f.email), FirstName: setIf(k, "first-name", f.first),
				LastName: setIf(k, "last-name", f.last), Language: setIf(k, "language", f.language),
			}
			user, err := findUser(k, k.args[0])
			if err != nil {
				return err
			}
			passwords.stdin = f.passwordStdin
			if err := passwords.fill(k, &change); err != nil {
				return err
			}
			if change != (client.UserChange{}) {
				if user, err = passwords.update(k, user.ID, change); err != nil {
					return err
				}
			}
			if account, any := a.change(k); any {
				if user, err = k.c.UpdateAccount(k.ctx, user.ID, account); err != nil {
					return adminsOnly(err)
				}
			}
			return showUser(k, user)
		},
	}.command(p)
}

// passwordFlags are the passwords that a change needs.
type passwordFlags struct {
	ask, stdin, currentStdin bool
}

func (s *passwordFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.currentStdin, "current-password-stdin", false, "Read your current password from stdin, on the line before a new one")
}

// fill adds the passwords that flags ask for.
func (s *passwordFlags) fill(k *call, change *client.UserChange) error {
	in := bufio.NewReader(k.out.p.stdin)
	if s.currentStdin {
		current, err := passwordLine(in)
		if err != nil {
			return err
		}
		change.CurrentPassword = client.Set(current)
	}
	switch {
	case s.stdin:
		password, err := passwordLine(in)
		if err != nil {
			return err
		}
		change.Password = client.Set(password)
	case s.ask:
		password, err := s.question(k, "--password-stdin", "New password: ")
		if err != nil {
			return err
		}
		change.Password = client.Set(password)
	}
	return nil
}

// update changes a user, and asks for the current password once the server wants it: only the server knows whose token this is.
func (s *passwordFlags) update(k *call, id string, change client.UserChange) (*client.User, error) {
	user, err := k.c.UpdateUser(k.ctx, id, change)
	if s.currentStdin || !wantsCurrentPassword(err) {
		return user, err
	}
	current, err := s.question(k, "--current-password-stdin", "Current password: ")
	if err != nil {
		return nil, err
	}
	change.CurrentPassword = client.Set(current)
	return k.c.UpdateUser(k.ctx, id, change)
}

func (s *passwordFlags) question(k *call, flag, prompt string) (string, error) {
	fd, err := k.out.p.terminal(k.cmd, flag)
	if err != nil {
		return "", err
	}
	return k.out.p.askSecret(k.ctx, fd, prompt)
}

// wantsCurrentPassword reports whether nothing else is wrong with a request than that it lacks the current password.
func wantsCurrentPassword(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusBadRequest && len(e.Fields) == 1 && e.Fields[0].Field == "current_password"
}

func newUserDelete(p *process) *cobra.Command {
	yes := false
	return verb{
		use: "delete USER", short: "Delete a user with all apps and topics",
		long: `Delete a user with all apps and topics. Streams end at once, and nothing brings them back.`,
		example: `# It asks first
freshet users delete me

# For admins
freshet users delete bob@example.com

# From a script
freshet users delete bob@example.com --yes`,
		flags: func(cmd *cobra.Command) { addYes(cmd, &yes) },
		run: func(k *call) error {
			user, err := findUser(k, k.args[0])
			if err != nil {
				return err
			}
			if err := k.confirm(yes, "Delete "+plain(user.Email)+" with all apps and topics?"); err != nil {
				return err
			}
			return k.c.DeleteUser(k.ctx, user.ID)
		},
	}.command(p)
}
