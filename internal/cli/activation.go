package cli

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

func newActivation(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "activation",
		Short: "Make and read activation keys",
		Long: `Make and read activation keys: signed texts that name a holder, an edition, its limits and when they end. A
server checks one without asking anybody. Container images without one run the beta edition.`,
		Example: `# What does the key of this installation say?
freshet activation inspect

# Become an issuer of your own: keep issuer.pem, give the printed line to your servers
freshet activation keygen --out issuer.pem

# Make a key
freshet activation issue --private-key issuer.pem --holder 'Example Ltd' --expires 2027-12-31`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	cmd.AddCommand(newActivationInspect(p), newActivationIssue(), newActivationKeygen())
	return cmd
}

func newActivationInspect(p *process) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "inspect [KEY]",
		Short: "Show what an activation key says and whether it is good",
		Long: `Show what an activation key says and whether it is good now. Without KEY it reads the key that freshet serve would
use. It exits with 3 if the key is not good.`,
		Example: `# The key of this installation
freshet activation inspect

# A key in a file
FRESHET_ACTIVATION_KEY_FILE=freshet.key freshet activation inspect

# A key of another issuer
freshet activation inspect --activation-public-key PUBLIC_KEY KEY`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "one key at a time, but got %d words", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			effective, err := p.load(cmd)
			if err != nil {
				return err
			}
			key, issuer := effective.Settings.Activation.Key, effective.Settings.Activation.PublicKey
			if len(args) == 1 {
				key = freshet.Secret(args[0])
			}
			if key == "" {
				return usage(cmd, "there is no activation key: give one, or set FRESHET_ACTIVATION_KEY")
			}
			return inspect(p.stdout, key, issuer, asJSON)
		},
	}
	addSettings(cmd, func(e *settings.Entry) bool { return e.Key == "activation.key" || e.Key == "activation.public_key" })
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print as JSON")
	return cmd
}

// inspected is what inspect prints for scripts.
type inspected struct {
	freshet.Activation
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Good  bool      `json:"good"`
}

// inspect prints what the key says also when it is not good, because that is when people want to know, and says so by an error.
func inspect(out io.Writer, key freshet.Secret, publicKey string, asJSON bool) error {
	a, err := freshet.ReadActivation(key)
	if err != nil {
		return err
	}
	issuer, err := freshet.ParseActivationIssuer(cmp.Or(publicKey, freshet.ActivationIssuer))
	if err != nil {
		return err
	}
	_, verdict := freshet.VerifyActivation(key, issuer, time.Now())
	if asJSON {
		err = json.NewEncoder(out).Encode(inspected{*a, a.From(), a.Until(), verdict == nil})
		return errors.Join(verdict, err)
	}
	good := "yes"
	if verdict != nil {
		good = "no"
	}
	connections := "any number"
	if n := a.Limits.Connections; n > 0 {
		connections = strconv.FormatInt(n, 10) + " at once"
	}
	_, err = fmt.Fprintf(out, "Holder       %s\nEdition      %s\nConnections  %s\nFrom         %s\nUntil        %s\nId           %s\nGood now     %s\n",
		a.Holder, a.Edition, connections, a.From().Format(time.RFC3339), a.Until().Format(time.RFC3339), a.ID, good)
	return errors.Join(verdict, err)
}

func newActivationIssue() *cobra.Command {
	var keyFile, holder, from, until string
	edition, connections := "standard", int64(0)
	cmd := &cobra.Command{
		Use:   "issue",
		Short: "Make an activation key",
		Long: `Make an activation key and print it. Days begin at midnight UTC; a key is good until the end of the day it expires
on.`,
		Example: `# Any number of connections until the end of 2027
freshet activation issue --private-key issuer.pem --holder 'Example Ltd' --expires 2027-12-31

# At most 500 connections, from a day to come
freshet activation issue --private-key issuer.pem --holder 'Example Ltd' --edition team \
  --connections 500 --from 2027-01-01 --expires 2027-12-31

# Into a file
freshet activation issue --private-key issuer.pem --holder Ada --expires 2027-12-31 > freshet.key`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keyFile == "" || holder == "" || until == "" {
				return usage(cmd, "--private-key, --holder and --expires are needed")
			}
			a := freshet.Activation{
				ID: freshet.NewID(), Holder: holder, Edition: edition, NotBefore: time.Now().Unix(),
				Limits: freshet.ActivationLimits{Connections: connections},
			}
			if err := setDays(&a, from, until); err != nil {
				return usage(cmd, "%s", err)
			}
			issuer, err := readIssuer(keyFile)
			if err != nil {
				return err
			}
			key, err := a.Sign(issuer)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key.Reveal())
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&keyFile, "private-key", "", "PEM file of the issuer, from freshet activation keygen")
	flags.Var(&textValue{&holder, "NAME"}, "holder", "Who may use the key")
	flags.Var(&textValue{&edition, "NAME"}, "edition", "Name of the edition")
	flags.Var(&textValue{&from, "DAY"}, "from", "First day on which the key is good; without it, at once")
	flags.Var(&textValue{&until, "DAY"}, "expires", "Last day on which the key is good")
	flags.Var(&countValue{&connections}, "connections", "Subscribers at once, on all nodes together; 0 is any number")
	return cmd
}

func setDays(a *freshet.Activation, from, until string) error {
	const layout = time.DateOnly
	if from != "" {
		first, err := time.Parse(layout, from)
		if err != nil {
			return fmt.Errorf("--from must be a day such as 2027-01-31, not %s", quote(from))
		}
		a.NotBefore = first.Unix()
	}
	last, err := time.Parse(layout, until)
	if err != nil {
		return fmt.Errorf("--expires must be a day such as 2027-12-31, not %s", quote(until))
	}
	a.Expires = last.AddDate(0, 0, 1).Unix()
	return nil
}

func newActivationKeygen() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make the keys of an issuer",
		Long: `Make the private key of an issuer of activation keys, in a new file that only its owner can read, and print the
public key that servers need to check them (activation.public_key).`,
		Example: `# Keep issuer.pem safe; whoever has it can make keys
freshet activation keygen --out issuer.pem

# Straight into the environment of a server
FRESHET_ACTIVATION_PUBLIC_KEY=$(freshet activation keygen --out issuer.pem) freshet serve

# Into a secret store
freshet activation keygen --out /run/secrets/issuer.pem`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage(cmd, "--out is needed: the file for the private key")
			}
			public, err := makeIssuer(out)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), freshet.FormatActivationIssuer(public))
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "File for the private key; it must not exist")
	return cmd
}

const pemType = "PRIVATE KEY" // PKCS #8, as openssl genpkey -algorithm ed25519 writes it

// makeIssuer never writes over a file: it might be the key that an installation depends on.
func makeIssuer(path string) (ed25519.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, freshet.Errorf(freshet.Conflict, "%s exists; keys are never overwritten", path)
	}
	if err != nil {
		return nil, freshet.Wrap(freshet.Invalid, err, "The private key cannot be written")
	}
	err = pem.Encode(f, &pem.Block{Type: pemType, Bytes: der})
	return public, errors.Join(err, f.Close())
}

func readIssuer(path string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, freshet.Wrap(freshet.Invalid, err, "The private key cannot be read")
	}
	notOurs := freshet.Errorf(freshet.Invalid, "%s holds no Ed25519 private key; freshet activation keygen makes one", path)
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != pemType {
		return nil, notOurs
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, notOurs
	}
	return private, nil
}

// textValue and countValue are flags whose help names what they take.
type textValue struct {
	text *string
	name string
}

func (v *textValue) String() string        { return *v.text }
func (v *textValue) Set(text string) error { *v.text = text; return nil }
func (v *textValue) Type() string          { return v.name }

type countValue struct{ n *int64 }

func (v *countValue) String() string { return strconv.FormatInt(*v.n, 10) }
func (v *countValue) Type() string   { return "NUMBER" }
func (v *countValue) Set(text string) (err error) {
	if *v.n, err = strconv.ParseInt(text, 10, 64); err != nil {
		return errors.New("it must be a whole number")
	}
	return nil
}
