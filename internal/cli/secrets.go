package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet/internal/server"
)

func newSecrets(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Replace the secret that signs tokens and seals credentials",
		Long: `Replace the secret that signs session tokens and seals what pollers show to their targets. On one machine it is in
the file secret.key of the data directory; token.secret names it elsewhere.`,
		Example: `# Replace the secret of a stopped server
freshet secrets rotate --data /var/lib/freshet

# Is token.secret set? If not, it is in the data directory, or in PostgreSQL
freshet config print | grep -E 'data:|database:|secret:'

# Keep it elsewhere: what is sealed with the one before is sealed again at the first start
FRESHET_TOKEN_SECRET_FILE=/etc/freshet/token-secret freshet serve --data /var/lib/freshet`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	cmd.AddCommand(newSecretsRotate(p))
	return cmd
}

func newSecretsRotate(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Seal everything with a new secret",
		Long: `Seal everything with a new secret, and forget the one before. Everybody signs in again afterwards. If it is interrupted,
nothing is lost: run it again, or start the server, which goes on where it ended.

With the embedded database, stop the server first. With PostgreSQL, give all nodes a new token.secret, and the one
before as token.previous_secret, restart them, and run this with the same settings while they run; then take
token.previous_secret away. If the nodes shared their secret through the database until now, there is no
previous one to give, and this removes it from there.`,
		Example: `# On one machine
systemctl stop freshet
freshet secrets rotate --data /var/lib/freshet
systemctl start freshet

# In a cluster, once all nodes have both secrets
freshet secrets rotate --config /etc/freshet/freshet.yaml

# The same, with the secrets in files
FRESHET_TOKEN_SECRET_FILE=/run/secrets/new FRESHET_TOKEN_PREVIOUS_SECRET_FILE=/run/secrets/old \
  freshet secrets rotate --database postgres://db/freshet`,
		Args:        noArguments,
		Annotations: flagsOfServe,
		RunE: func(cmd *cobra.Command, _ []string) error {
			effective, err := p.load(cmd)
			if err != nil {
				return err
			}
			s := effective.Settings
			done, err := server.RotateSecrets(cmd.Context(), &s, server.NewLogger(p.stderr, &s))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "sealed again: %d topics\n", done.Resealed)
			if done.Lost > 0 && err == nil {
				_, err = fmt.Fprintf(p.stdout, "cannot be read, set them again: %d topics\n", done.Lost)
			}
			return err
		},
	}
	addSettings(cmd, everySetting)
	return cmd
}
