package settings

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/freshet-io/freshet/internal/keyfile"
)

// AdminEmailVariable overrides the administrator's e-mail, in exactly this spelling. It belongs to the
// environment layer and wins over FRESHET_ADMIN_EMAIL there: who sets it runs an installation that knew it before
// it knew us. A flag still wins over it.
const AdminEmailVariable = "SDIO_admin_email"

// TestPrefix begins variables that are meant for tests and never refused.
const TestPrefix = prefix + "TEST_"

// ClientPrefix begins variables of the commands that talk to a server; they are no settings of one.
const ClientPrefix = prefix + "CLI_"

// parseEnviron drops empty values: NAME= is how compose files and charts say "not set".
func parseEnviron(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		switch {
		case name == "": // Windows keeps the current directory of each drive in such entries
		case text == "" && isKnownVariable(name):
			delete(env, name)
		default:
			env[name] = text
		}
	}
	return env
}

func (l *loader) loadEnviron(env map[string]string) {
	for i := range table {
		l.loadVariable(&table[i], env)
	}
	if text, ok := env[AdminEmailVariable]; ok && text != "" {
		l.apply(entry("admin.email"), text, Origin{LayerEnvironment, AdminEmailVariable})
	}
	for _, name := range unknownVariables(env) {
		l.faults.add("", name, "is not a setting%s", nearVariable(name))
	}
}

// nearVariable compares without the prefix, which all names share and which would make any two look alike.
func nearVariable(name string) string {
	var bare []string
	for _, v := range append(variables(), ConfigVariable) {
		bare = append(bare, strings.TrimPrefix(v, prefix))
	}
	if near := Nearest(strings.TrimPrefix(name, prefix), bare); near != "" {
		return "; did you mean " + prefix + near + "?"
	}
	return seeAll
}

func (l *loader) loadVariable(e *Entry, env map[string]string) {
	text, direct := env[e.Variable()]
	path, inFile := env[e.FileVariable()]
	switch {
	case direct && inFile:
		l.faulty[e.Key] = true
		l.faults.add(e.FileVariable(), e.Key, "is set by %s as well; keep one of them", e.Variable())
	case direct:
		l.apply(e, text, Origin{LayerEnvironment, e.Variable()})
	case inFile:
		raw, err := os.ReadFile(path)
		if err != nil {
			l.faulty[e.Key] = true
			l.faults.add(e.FileVariable(), path, "cannot be read: %s", plainCause(err))
			return
		}
		if exposed, err := keyfile.Exposed(path); err == nil && exposed {
			l.exposed = append(l.exposed, ExposedFile{e.FileVariable(), path})
		}
		// Editors and echo end files with a newline that is no part of the secret.
		l.apply(e, strings.TrimRight(string(raw), "\r\n"), Origin{LayerEnvironment, e.FileVariable()})
	}
}

func unknownVariables(env map[string]string) []string {
	var unknown []string
	for name, text := range env {
		if strings.HasPrefix(name, prefix) && !isKnownVariable(name) && !isForeignVariable(name, text) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

func isKnownVariable(name string) bool {
	if name == ConfigVariable || name == AdminEmailVariable {
		return true
	}
	for i := range table {
		if name == table[i].Variable() || name == table[i].FileVariable() {
			return true
		}
	}
	return false
}

// serviceLink matches what Kubernetes puts into every pod for a service whose name begins with "freshet":
// FRESHET_SERVICE_HOST, FRESHET_PORT_8000_TCP_ADDR, FRESHET_SUBSCRIBER_SERVICE_PORT_HTTP. Refusing those would keep
// the server from starting in its own chart.
var serviceLink = regexp.MustCompile(`^FRESHET_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// isForeignVariable reports whether a variable carries our prefix but is not meant for us.
func isForeignVariable(name, text string) bool {
	switch {
	case strings.HasPrefix(name, TestPrefix), strings.HasPrefix(name, ClientPrefix), serviceLink.MatchString(name):
		return true
	case strings.HasSuffix(name, "_PORT"): // a service link too, told from a guess at a setting by its value
		return strings.HasPrefix(text, "tcp://") || strings.HasPrefix(text, "udp://")
	}
	// The command line library reads these for shell completion.
	return name == prefix+"ACTIVE_HELP" || name == prefix+"COMPLETION_DESCRIPTIONS"
}

func entry(key string) *Entry {
	for i := range table {
		if table[i].Key == key {
			return &table[i]
		}
	}
	return nil
}

// plainCause is why a file could not be read, without the path that the message names already.
func plainCause(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}
