package server

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/freshet-io/freshet/internal/catalog"
	"github.com/freshet-io/freshet/internal/keyfile"
	"github.com/freshet-io/freshet/internal/settings"
	"github.com/freshet-io/freshet/internal/store"
)

// setSecrets says where the secret is that signs tokens and seals credentials: in the settings, in a file beside the embedded
// database, or in a database that several nodes share.
func setSecrets(o *catalog.Options, s *settings.Settings) {
	o.TokenSecret, o.PreviousSecret = []byte(s.Token.Secret.Reveal()), []byte(s.Token.PreviousSecret.Reveal())
	o.Shared = s.Database != ""
	if !o.Shared {
		o.KeyFile = filepath.Join(s.Data, keyfile.Name)
	}
}

// RotateSecrets seals everything in the database of these settings with a new secret. An embedded database must not be in use.
func RotateSecrets(ctx context.Context, s *settings.Settings, log *slog.Logger) (done catalog.Rotation, err error) {
	db, err := store.Open(ctx, store.Location{URL: s.Database.Reveal(), Dir: s.Data, Existing: true})
	if err != nil {
		return done, err
	}
	defer func() {
		if failed := db.Close(); err == nil {
			err = failed
		}
	}()
	o := catalog.Options{Log: log}
	setSecrets(&o, s)
	return catalog.Rotate(ctx, db, o)
}
