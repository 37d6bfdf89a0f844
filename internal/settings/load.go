package settings

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sources is where settings come from besides the defaults. The caller owns the process state and passes it in.
type Sources struct {
	File    string            // YAML file; empty means what FRESHET_CONFIG names, if anything
	Environ []string          // NAME=value
	Flags   map[string]string // by name without dashes, only those that were given
	Unknown []string          // flags that were given and do not exist, as written
}

// ConfigFlag and ConfigVariable name the YAML file. They are not settings: a file cannot name itself.
const (
	ConfigFlag     = "config"
	ConfigVariable = prefix + "CONFIG"
)

// Effective is the outcome of all layers.
type Effective struct {
	Settings Settings
	Exposed  []ExposedFile     // files with secrets that others can read
	origins  map[string]Origin // by key
}

// ExposedFile is a file with a secret that others than its owner can read, and the variable that names it.
type ExposedFile struct{ Variable, Path string }

// Origin is where a value came from.
type Origin struct {
	Layer Layer
	Name  string // file:line, variable or flag; empty for a default
}

// Layer is a kind of origin; a later one wins.
type Layer int

// The layers, in their order.
const (
	LayerDefault Layer = iota
	LayerFile
	LayerEnvironment
	LayerFlag
)

func (o Origin) String() string {
	if o.Layer == LayerDefault {
		return "default"
	}
	return o.Name
}

// Origin says where the value of a setting came from.
func (e *Effective) Origin(key string) Origin { return e.origins[key] }

// Default returns the settings of a server that was told nothing.
func Default() Settings {
	l := newLoader()
	return l.settings
}

// Load puts the layers on top of each other. It returns every fault at once, as an *Error.
func Load(src Sources) (*Effective, error) {
	l := newLoader()
	env := parseEnviron(src.Environ)
	l.loadFile(src.File, env)
	l.loadEnviron(env)
	l.loadFlags(src)
	l.faults = append(l.faults, checkListeners(&l.settings,
		func(key string) bool { return l.faulty[key] },
		func(key string) string { return l.origins[key].Name })...)
	l.faults = append(l.faults, checkAdminListener(&l.settings, l.origins["admin.listen"].Name)...)
	if s := &l.settings.TLS; (s.Certificate == "") != (s.Key == "") {
		l.faults.add("", "tls.certificate", "and tls.key belong together; set both or neither")
	}
	l.faults = append(l.faults, checkCluster(&l.settings)...)
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	return &Effective{Settings: l.settings, Exposed: l.exposed, origins: l.origins}, nil
}

// loader is the state while the layers are read.
type loader struct {
	settings Settings
	origins  map[string]Origin
	exposed  []ExposedFile
	faulty   map[string]bool // keys with a bad value in any layer
	faults   faults
}

func newLoader() *loader {
	l := &loader{origins: map[string]Origin{}, faulty: map[string]bool{}}
	for i := range table {
		l.apply(&table[i], table[i].Default, Origin{Layer: LayerDefault})
	}
	return l
}

func (l *loader) apply(e *Entry, text string, from Origin) {
	if err := e.set(&l.settings, text); err != nil {
		l.faulty[e.Key] = true
		l.faults.add(from.Name, e.Key, "%s", e.complaint(text, err))
		return
	}
	l.origins[e.Key] = from
}

func (l *loader) loadFlags(src Sources) {
	for i := range table {
		if text, ok := src.Flags[table[i].Flag()]; ok {
			l.apply(&table[i], text, Origin{LayerFlag, "--" + table[i].Flag()})
		}
	}
	for _, name := range src.Unknown {
		near := Nearest(strings.TrimLeft(name, "-"), Flags())
		if near != "" {
			near = "; did you mean --" + near + "?"
		}
		l.faults.add("", name, "is not a flag%s", near)
	}
}

const longestQuote = 60 // bytes of a bad value that a message repeats

// quote shows what was given without letting it break the line or flood it, and without the password of a URL.
func quote(text string) string {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			text = scheme + "://xxxxx" + rest[at:]
		}
		text, _, _ = strings.Cut(text, "?") // keys may be there too
	}
	if len(text) > longestQuote {
		cut := longestQuote
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strconv.Quote(text)
}
