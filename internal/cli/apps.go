package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
)

func newApps(p *process) *cobra.Command {
	return group("apps", "Make and manage apps",
		`Make and manage apps. An app groups topics that share their keys. APP is an id or a name.`,
		`# A new app, with fresh keys
freshet apps create Quotes

# Yours
freshet apps list

# One of them, with its keys hidden
freshet apps show Quotes`,
		newAppCreate(p), newAppList(p), newAppShow(p), newAppUpdate(p), newAppDelete(p))
}

// appFlags are what an app may have beside its name.
type appFlags struct {
	name                  string
	autoProvision, signed bool
	pollEvery             time.Duration
	forcePublishing       bool
}

func (f *appFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.autoProvision, "auto-provision", false, "Let holders of the subscriber key follow any URL")
	flags.BoolVar(&f.signed, "require-signature", false, "Require signed requests of subscribers")
	flags.DurationVar(&f.pollEvery, "poll-every", 0, "How often topics of the app poll that set nothing themselves")
	flags.BoolVar(&f.forcePublishing, "force-publishing", true, "Keep publications even when nobody is subscribed")
}

// change is what the flags that were given say.
func (f *appFlags) change(k *call) client.AppChange {
	change := client.AppChange{
		AutoProvisioningAllowed:       setIf(k, "auto-provision", f.autoProvision),
		ClientRequestSignatureEnabled: setIf(k, "require-signature", f.signed),
	}
	var defaults client.DefaultsChange
	if k.given("poll-every") {
		defaults.Poller = client.Set(client.PollerDefaults{PollingFrequency: client.Set(f.pollEvery.Milliseconds())})
	}
	if k.given("force-publishing") {
		defaults.Post = client.Set(client.PostDefaults{ForcePublishing: client.Set(f.forcePublishing)})
	}
	if !defaults.Poller.IsZero() || !defaults.Post.IsZero() {
		change.DefaultConfigurations = client.Set(defaults)
	}
	return change
}

func newAppCreate(p *process) *cobra.Command {
	var f appFlags
	return verb{
		use: "create NAME", short: "Make an app",
		long: `Make an app with fresh keys. freshet keys show APP prints them.`,
		example: `# An app
freshet apps create Quotes

# One whose subscribers may follow any URL, polled every 5 seconds
freshet apps create Weather --auto-provision --poll-every 5s

# Its id, for a script
freshet apps create Quotes -o json | jq -r .id`,
		flags: f.add,
		run: func(k *call) error {
			change := f.change(k)
			change.Name = client.Set(k.args[0])
			app, err := k.c.CreateApp(k.ctx, change)
			if err != nil {
				return err
			}
			return showApp(k, app)
		},
	}.command(p)
}

func newAppList(p *process) *cobra.Command {
	return verb{
		use: "list", short: "List your apps",
		long: `List your apps.`,
		example: `# For people
freshet apps list

# For scripts, keys included
freshet apps list -o json

# On another server
freshet apps list --context production`,
		run: func(k *call) error {
			all, err := client.Collect(k.c.Apps(k.ctx))
			if err != nil {
				return err
			}
			var rows [][]string
			for _, a := range all {
				rows = append(rows, []string{a.ID, a.Name, yesNo(a.AutoProvisioningAllowed), yesNo(a.ClientRequestSignatureEnabled), when(a.CreatedAt)})
			}
			return k.out.rows(orEmpty(all), []string{"ID", "NAME", "AUTO-PROVISION", "SIGNED", "CREATED"}, rows, "No apps yet; freshet apps create NAME makes one.")
		},
	}.command(p)
}

// orEmpty makes JSON say [] instead of null.
func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func newAppShow(p *process) *cobra.Command {
	return verb{
		use: "show APP", short: "Show an app",
		long: `Show an app. Its keys stay hidden in the table; freshet keys show prints them.`,
		example: `# By name or by id
freshet apps show Quotes

# For a script, keys included
freshet apps show Quotes -o json

# Only its keys
freshet keys show Quotes`,
		complete: appNames,
		run: func(k *call) error {
			app, err := findApp(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			return showApp(k, app)
		},
	}.command(p)
}

func showApp(k *call, a *client.App) error {
	d := a.DefaultConfigurations
	return k.out.facts(a, [][]string{
		{"Id", a.ID}, {"Name", a.Name},
		{"Auto-provision", yesNo(a.AutoProvisioningAllowed)}, {"Signed requests", yesNo(a.ClientRequestSignatureEnabled)},
		{"Poll every", millis(d.Poller.PollingFrequency)}, {"Force publishing", yesNo(d.Post.ForcePublishing)},
		{"Connections", quotaText(a.Quotas.Connections)}, {"Messages a month", quotaText(a.Quotas.MessagesPerMonth)},
		{"Publications a minute", quotaText(a.Quotas.RequestsPerMinute)},
		{"Topics", quotaText(a.Quotas.Topics)}, {"Document bytes", quotaText(a.Quotas.DocumentBytes)},
		{"Keys", "freshet keys show " + a.ID}, {"Created", when(a.CreatedAt)}, {"Changed", when(a.UpdatedAt)},
	})
}

func newAppUpdate(p *process) *cobra.Command {
	var f appFlags
	var q quotaFlags
	return verb{
		use: "update APP", short: "Change an app",
		long: `Change an app. What no flag names stays as it is. Admins may also set its quotas.`,
		example: `# Another name
freshet apps update Quotes --name Prices

# Another default for its topics
freshet apps update Quotes --poll-every 10s

# For admins: a limit
freshet apps update 0198c5f2-7d6e-7a10-8c3e-2f5b8e1d4a77 --connections 100`,
		complete: appNames,
		flags: func(cmd *cobra.Command) {
			addText(cmd.Flags(), &f.name, "name", "NAME", "Another name")
			f.add(cmd)
			q.add(cmd, "publications")
		},
		run: func(k *call) error {
			app, err := findApp(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			change := f.change(k)
			change.Name = setIf(k, "name", f.name)
			if change != (client.AppChange{}) || q.change().IsZero() {
				if app, err = k.c.UpdateApp(k.ctx, app.ID, change); err != nil {
					return err
				}
			}
			if quotas := q.change(); !quotas.IsZero() {
				if app, err = k.c.SetAppQuotas(k.ctx, app.ID, quotas); err != nil {
					return adminsOnly(err)
				}
			}
			return showApp(k, app)
		},
	}.command(p)
}

func newAppDelete(p *process) *cobra.Command {
	yes := false
	return verb{
		use: "delete APP", short: "Delete an app with its topics and keys",
		long: `Delete an app with all its topics and keys. Its streams end at once, and nothing brings it back.`,
		example: `# It asks first
freshet apps delete Quotes

# From a script
freshet apps delete Quotes --yes

# What would go with it
freshet topics list Quotes`,
		complete: appNames,
		flags:    func(cmd *cobra.Command) { addYes(cmd, &yes) },
		run: func(k *call) error {
			app, err := findApp(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			if err := k.confirm(yes, "Delete the app "+plain(app.Name)+" with all its topics and keys?"); err != nil {
				return err
			}
			return k.c.DeleteApp(k.ctx, app.ID)
		},
	}.command(p)
}

func newKeys(p *process) *cobra.Command {
	return group("keys", "Show and renew the keys of an app",
		`Show and renew the keys of an app: the subscriber key opens its topics to readers, the publisher key to writers, and the
signature key signs requests of readers where an app requires it.`,
		`# All three
freshet keys show Quotes

# A new subscriber key; the old one works for another day
freshet keys renew Quotes subscriber --overlap 24h

# Only the publisher key, for a script
freshet keys show Quotes publisher`,
		newKeyShow(p), newKeyRenew(p))
}

func keyKinds() []string {
	var names []string
	for _, kind := range freshet.KeyKinds() {
		names = append(names, string(kind))
	}
	return names
}

func keyKind(k *call, name string) (freshet.KeyKind, error) {
	for _, kind := range freshet.KeyKinds() {
		if name == string(kind) {
			return kind, nil
		}
	}
	return "", usage(k.cmd, "%s is not a kind of key; there are subscriber, publisher and signature", quote(name))
}

func keyOf(a *client.App, kind freshet.KeyKind) string {
	return map[freshet.KeyKind]string{
		freshet.SubscriberKey: a.SubscriberKey, freshet.PublisherKey: a.PublisherKey, freshet.SignatureKey: a.SignatureKey,
	}[kind]
}

// keyWords completes the app first and then the kind.
func keyWords(cmd *cobra.Command) {
	apps := cmd.ValidArgsFunction
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return keyKinds(), cobra.ShellCompDirectiveNoFileComp
		}
		return apps(cmd, args, word)
	}
}

func newKeyShow(p *process) *cobra.Command {
	cmd := verb{
		use: "show APP [KIND]", short: "Print the keys of an app",
		long: `Print the keys of an app, or only the one of a kind: subscriber, publisher or signature. They are secrets.`,
		example: `# All three
freshet keys show Quotes

# Only one, for a script
KEY=$(freshet keys show Quotes publisher)

# As JSON
freshet keys show Quotes -o json`,
		complete: appNames,
		run: func(k *call) error {
			var kind freshet.KeyKind
			if name := argument(k.args, 1); name != "" {
				var err error
				if kind, err = keyKind(k, name); err != nil {
					return err
				}
			}
			app, err := findApp(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			return showKeys(k, app, kind)
		},
	}.command(p)
	keyWords(cmd)
	return cmd
}

// showKeys prints one key alone, for scripts, or all of them.
func showKeys(k *call, app *client.App, kind freshet.KeyKind) error {
	shown := map[string]string{}
	var rows [][]string
	for _, each := range freshet.KeyKinds() {
		if kind == "" || kind == each {
			shown[string(each)] = keyOf(app, each)
			rows = append(rows, []string{string(each), keyOf(app, each)})
		}
	}
	if kind != "" && !k.out.isJSON() {
		rows = [][]string{{keyOf(app, kind)}}
	}
	return k.out.facts(shown, rows)
}

func newKeyRenew(p *process) *cobra.Command {
	var r client.Renewal
	cmd := verb{
		use: "renew APP KIND", short: "Renew a key of an app",
		long: `Renew a key of an app: subscriber, publisher or signature. The old one is revoked, which ends the streams that use it, at
once or after an overlap. It prints the new key.`,
		example: `# The old one stops working at once
freshet keys renew Quotes publisher

# The old one works for another hour
freshet keys renew Quotes subscriber --overlap 1h

# Bring a key along from elsewhere
freshet keys renew Quotes subscriber --new-key my-subscriber-key-from-elsewhere`,
		complete: appNames,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().DurationVar(&r.Overlap, "overlap", 0, "How long the old key goes on working beside the new one")
			addText(cmd.Flags(), &r.Key, "new-key", "KEY", "A key to bring along from elsewhere")
		},
		run: func(k *call) error {
			kind, err := keyKind(k, k.args[1])
			if err != nil {
				return err
			}
			if r.Overlap < 0 || r.Overlap > 0 && r.Overlap < time.Second {
				return usage(k.cmd, "--overlap must be a second at least")
			}
			app, err := findApp(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			if app, err = k.c.RenewKey(k.ctx, app.ID, kind, r); err != nil {
				return err
			}
			return showKeys(k, app, kind)
		},
	}.command(p)
	keyWords(cmd)
	return cmd
}
