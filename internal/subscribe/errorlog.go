package subscribe

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/loglimit"
)

// errorLog writes a line for every error event, so that the session that people quote when they ask for help leads somewhere. Strangers
// cause these events, so the lines of a second are limited, and what strangers send is left out: keys, queries, paths.
type errorLog struct {
	lines   *loglimit.Logger
	proxies httpkit.Proxies
}

// errorLines is how many error events a second are logged one by one.
const errorLines = 20

func newErrorLog(log *slog.Logger, proxies httpkit.Proxies) errorLog {
	return errorLog{loglimit.New(log, "error events", errorLines), proxies}
}

// refused logs a subscription that was answered with an error.
func (l errorLog) refused(r *http.Request, t *requestTarget, f *failure, err error) {
	place := placeOf(t)
	remote, _ := l.proxies.Trust(r)
	args := []any{"code", f.Code, "session", f.SessionID, place.Key, place.Value.String(), "remote", remote}
	if category(f.Code) == serverException && !errors.Is(err, errDraining) && r.Context().Err() == nil {
		l.lines.Log(slog.LevelError, "subscription failed", append(args, "err", err)...)
		return
	}
	l.lines.Log(slog.LevelInfo, "subscription refused", append(args, "reason", reason(f, err))...)
}

// ended logs the end of so many streams by one error event.
func (l errorLog) ended(topicID string, streams int, f *failure, err error) {
	l.lines.Log(slog.LevelInfo, "streams ended", "code", f.Code, "session", f.SessionID, "topic", topicID, "streams", streams, "reason", reason(f, err))
}

// told logs an error event after which streams go on.
func (l errorLog) told(topicID string, f *failure, err error) {
	l.lines.Log(slog.LevelInfo, "streams told of an error", "code", f.Code, "session", f.SessionID, "topic", topicID, "reason", reason(f, err))
}

// reason is the message of an error event, unless it may quote what was sent.
func reason(f *failure, err error) string {
	if freshet.KindOf(err) == freshet.Invalid {
		code, _ := CodeOf(f.Code)
		return code.Meaning
	}
	return f.Message
}

// placeOf names what was asked for: a topic, or the host of a data source, whose URL may carry secrets everywhere else.
func placeOf(t *requestTarget) slog.Attr {
	if id, ok := t.topicID(); ok && freshet.IsID(id) {
		return slog.String("topic", id)
	}
	if source, ok := t.sourceURL(); ok {
		return slog.String("host", safeHost(source))
	}
	return slog.String("path", "(other)")
}

// longestName is the longest host without a dot that is logged. A longer one may be a key that was taken for a host.
const longestName = 15

func safeHost(source string) string {
	u, err := url.Parse(sourceText(source))
	if err != nil {
		return "(unreadable)"
	}
	host := u.Hostname()
	if len(host) > longestName && !strings.ContainsAny(host, ".:") {
		return "(other)"
	}
	return host
}
