package server

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// soon is how long before its end a key is worth a warning.
const soon = 30 * 24 * time.Hour

// activate decides which edition runs. A key that is no good is an error, never a smaller edition: whoever set one counts
// on what it names. It is asked once; a server that runs is not stopped when its key expires, but does not start again.
func activate(s *settings.Settings, now time.Time, log *slog.Logger) (freshet.Edition, error) {
	if s.Activation.Key == "" {
		edition := freshet.EditionOf(s.Distribution, nil)
		if edition == freshet.BetaEdition {
			log.Warn("this is the beta edition, which is not for production; set activation.key to lift its limit", "connections", edition.Connections)
		}
		return edition, nil
	}
	issuer, err := freshet.ParseActivationIssuer(cmp.Or(s.Activation.PublicKey, freshet.ActivationIssuer))
	if err != nil {
		return freshet.Edition{}, err
	}
	a, err := freshet.VerifyActivation(s.Activation.Key, issuer, now)
	if err != nil {
		return freshet.Edition{}, err
	}
	left := a.Until().Sub(now)
	attrs := []any{"holder", a.Holder, "edition", a.Edition, "connections", a.Limits.Connections, "expires", a.Until(), "id", a.ID}
	if left < soon {
		log.Warn("the activation key expires soon; without another one the next start is refused", attrs...)
	} else {
		log.Info("activated", attrs...)
	}
	return freshet.EditionOf(s.Distribution, a), nil
}
