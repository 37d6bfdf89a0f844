package cli

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// exitCodes is what a script can tell from how the program ended.
var exitCodes = map[freshet.Kind]int{
	freshet.Internal: 1,

	// The command line, the settings, or what was sent.
	freshet.Invalid:          2,
	freshet.MethodNotAllowed: 2,
	freshet.UnsupportedMedia: 2,
	freshet.TooLarge:         2,

	// Credentials that do not hold.
	freshet.Unauthenticated:     3,
	freshet.MalformedCredential: 3,
	freshet.UnknownCredential:   3,
	freshet.RevokedCredential:   3,
	freshet.ExpiredCredential:   3,
	freshet.AccountDisabled:     3,
	freshet.Forbidden:           3,

	// Something that does not exist.
	freshet.NotFound:      4,
	freshet.TopicNotFound: 4,
	freshet.TopicGone:     4,

	// A clash with something that does exist, such as a port in use.
	freshet.Conflict:           5,
	freshet.PreconditionFailed: 5,

	// Trying again later can help.
	freshet.TooManyRequests: 6,
	freshet.ConnectionLimit: 6,
	freshet.MessageLimit:    6,
	freshet.Unavailable:     6,
	freshet.Timeout:         6,
	freshet.TopicLimit:      6,
	freshet.DocumentLimit:   6,

	// A data source that fails: the same holds.
	freshet.SourceFailed:       6,
	freshet.SourceUnreachable:  6,
	freshet.SourceUnauthorized: 6,
	freshet.SourceForbidden:    6,
	freshet.SourceExpired:      6,
	freshet.SourceUnknownHost:  6,
	freshet.SourceUnreadable:   6,
}

// failure adds to an error what only a person at a command line has use for.
type failure struct {
	error
	hint string // what to do about it; may be empty
	code int    // exit code, when it is not that of the error's kind
}

func (f *failure) Unwrap() error { return f.error }

// usage is an error in what was typed.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &failure{
		error: freshet.Errorf(freshet.Invalid, format, args...),
		hint:  cmd.CommandPath() + " --help explains it",
	}
}

// report tells a person about the error and returns the exit code. The cause is shown as well, on a line of its own:
// who runs the program is its operator.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	text, cause := explain(err)
	text = "freshet: " + text + "\n"
	if cause != "" {
		text += "cause: " + cause + "\n"
	}
	code := exitCodes[freshet.KindOf(err)]
	if f, ok := errors.AsType[*failure](err); ok {
		if f.hint != "" {
			text += "hint: " + f.hint + "\n"
		}
		if f.code != 0 {
			code = f.code
		}
	}
	_, _ = io.WriteString(stderr, text) // nobody to tell if nobody reads
	return code
}

// explain separates what went wrong from what caused it. Faults in the settings speak for themselves, a line each.
func explain(err error) (text, cause string) {
	e, ok := errors.AsType[*freshet.Error](err)
	if _, isSettings := errors.AsType[*settings.Error](err); isSettings || !ok || e.Err == nil {
		return err.Error(), ""
	}
	public := *e
	public.Err = nil
	// Some libraries spread their messages over several lines.
	return public.Error(), strings.Join(strings.Fields(e.Err.Error()), " ")
}

// quote shows a word that somebody typed, with nothing in it that could disturb a terminal.
func quote(word string) string { return strconv.Quote(word) }
