package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/settings"
)

// host is what is remembered of one server: where it is, and a right to use it.
type host struct {
	Server     string
	Subscriber string
	Admin      string
	Email      string
	UserID     string
	Token      freshet.Secret
	ExpiresAt  time.Time
}

// storedHost is how it stands in the file. The file is the one place where a token may be written.
type storedHost struct {
	Server     string    `json:"server"`
	Subscriber string    `json:"subscriber,omitempty"`
	Admin      string    `json:"admin,omitempty"`
	Email      string    `json:"email,omitempty"`
	UserID     string    `json:"user_id,omitempty"`
	Token      string    `json:"token,omitempty"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
}

// contexts are the servers that somebody works with, by name.
type contexts struct {
	Current string                `json:"current,omitempty"`
	Servers map[string]storedHost `json:"contexts"`
}

func (c *contexts) names() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.Servers))
}

// pick returns the context of that name, or the current one, or else a server on this machine.
func (c *contexts) pick(name string) (host, error) {
	if name == "" {
		name = c.Current
	}
	if name == "" {
		return host{Server: client.DefaultBaseURL}, nil
	}
	s, ok := c.Servers[name]
	if !ok {
		return host{}, c.unknown(name)
	}
	return host{s.Server, s.Subscriber, s.Admin, s.Email, s.UserID, freshet.Secret(s.Token), s.ExpiresAt}, nil
}

// at returns the name of a context for the server at an address, the current one if it is; "" if there is none.
func (c *contexts) at(address string) string {
	if c.Servers[c.Current].Server == address {
		return c.Current
	}
	for _, name := range c.names() {
		if c.Servers[name].Server == address {
			return name
		}
	}
	return ""
}

func (c *contexts) put(name string, s host) {
	c.Servers[name] = storedHost{s.Server, s.Subscriber, s.Admin, s.Email, s.UserID, s.Token.Reveal(), s.ExpiresAt}
}

func (c *contexts) unknown(name string) error {
	text := "there is no context " + quote(name)
	if near := settings.Nearest(name, c.names()); near != "" {
		text += "; did you mean " + near + "?"
	}
	return &failure{error: freshet.Errorf(freshet.NotFound, "%s", text), hint: "freshet context list shows them"}
}

// contextsFile is where contexts are kept: in the user's configuration directory unless a variable names another place. It is ""
// for who has no home.
func (p *process) contextsFile() string {
	if path := p.variable(configVariable); path != "" {
		return path
	}
	dir := p.variable("XDG_CONFIG_HOME")
	if home := p.variable("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
		if runtime.GOOS == "darwin" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	}
	if dir == "" {
		dir = p.variable("AppData")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "freshet", "contexts.json")
}

// loadContexts reads the file; there need not be one.
func (p *process) loadContexts() (*contexts, error) {
	c := &contexts{Servers: map[string]storedHost{}}
	path := p.contextsFile()
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, freshet.Wrap(freshet.Invalid, err, "the contexts cannot be read")
	}
	if err := json.Unmarshal(text, c); err != nil {
		// The cause is left out: it may quote a token.
		return nil, &failure{error: freshet.Errorf(freshet.Invalid, "%s is not a file of contexts", path), hint: "repair or delete it, and sign in again"}
	}
	if c.Servers == nil {
		c.Servers = map[string]storedHost{}
	}
	return c, nil
}

// saveContexts replaces the file as a whole, readable by its owner only.
func (p *process) saveContexts(c *contexts) error {
	path := p.contextsFile()
	if path == "" {
		return &failure{
			error: freshet.Errorf(freshet.Invalid, "there is no home directory to keep contexts in"),
			hint:  "set " + configVariable + " to a file",
		}
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(path, append(text, '\n')); err != nil {
		return freshet.Wrap(freshet.Invalid, err, "the contexts cannot be saved")
	}
	return nil
}

func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".contexts-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already if all went well
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
