package settings

import (
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet"
)

// syntax is how values of one type are written and checked.
type syntax[T any] struct {
	placeholder string   // stands for the value in help texts, as in --data DIR
	valid       string   // what is accepted, to be read after "must be"
	choices     []string // when only these words are accepted
	isList      bool     // a YAML sequence, or a comma-separated text elsewhere
	parse       func(text string) (T, error)
	format      func(T) string
}

// valueError says why a text is not accepted, to be read after the name of the setting.
type valueError struct {
	must  string // "must be …"
	given string // the part at fault, when it is not the whole text
	whole bool   // must is the whole message: repeating what was given adds nothing
}

func (r *valueError) Error() string { return r.must }

func must(format string, args ...any) error {
	return &valueError{must: "must " + fmt.Sprintf(format, args...)}
}

func refuse(format string, args ...any) error {
	return &valueError{must: fmt.Sprintf(format, args...), whole: true}
}

// text accepts any non-empty text.
func text(placeholder, valid string) syntax[string] {
	return syntax[string]{
		placeholder: placeholder,
		valid:       valid,
		format:      func(s string) string { return s },
		parse: func(s string) (string, error) {
			if strings.TrimSpace(s) == "" {
				return "", refuse("must not be empty")
			}
			return s, nil
		},
	}
}

// optionalText accepts any text.
func optionalText(placeholder, valid string) syntax[string] {
	s := text(placeholder, valid)
	s.parse = func(text string) (string, error) { return text, nil }
	return s
}

// enum accepts exactly the given words.
func enum[T ~string](choices ...T) syntax[T] {
	words := make([]string, len(choices))
	for i, c := range choices {
		words[i] = string(c)
	}
	return syntax[T]{
		placeholder: strings.Join(words, "|"),
		valid:       "one of " + strings.Join(words, ", "),
		choices:     words,
		format:      func(v T) string { return string(v) },
		parse: func(s string) (T, error) {
			for _, c := range choices {
				if s == string(c) {
					return c, nil
				}
			}
			return "", must("be one of %s", strings.Join(words, ", "))
		},
	}
}

// boolean accepts true and false, and nothing that only some YAML readers take for them.
func boolean() syntax[bool] {
	return syntax[bool]{
		placeholder: "true|false",
		valid:       "true or false",
		choices:     []string{"true", "false"},
		format:      strconv.FormatBool,
		parse: func(s string) (bool, error) {
			if s != "true" && s != "false" {
				return false, must("be true or false")
			}
			return s == "true", nil
		},
	}
}

// count accepts a whole number from 0 to highest.
func count(highest int64) syntax[int64] {
	const valid = "a whole number, 0 or more"
	return syntax[int64]{
		placeholder: "N",
		valid:       valid,
		format:      func(n int64) string { return strconv.FormatInt(n, 10) },
		parse: func(s string) (int64, error) {
			n, err := parseInt(s)
			switch {
			case err != nil:
				return 0, must("be %s", valid)
			case n > highest:
				return 0, must("be at most %d", highest)
			}
			return n, nil
		},
	}
}

// auto leaves a number to the environment; automatic is what the field is then.
const (
	auto      = "auto"
	automatic = -1
)

// autoCount is count, or auto.
func autoCount(highest int64) syntax[int64] {
	s := count(highest)
	parse, format := s.parse, s.format
	valid := "auto, or " + s.valid
	s.valid = valid
	s.parse = func(text string) (int64, error) {
		if text == auto {
			return automatic, nil
		}
		if _, err := parseInt(text); err != nil {
			return 0, must("be %s", valid)
		}
		return parse(text)
	}
	s.format = func(n int64) string {
		if n == automatic {
			return auto
		}
		return format(n)
	}
	return s
}

// powerOfTwo accepts 1, 2, 4 … up to highest.
func powerOfTwo(highest int64) syntax[int64] {
	s := count(highest)
	parse := s.parse
	s.valid = fmt.Sprintf("a power of two from 1 to %d", highest)
	s.parse = func(text string) (int64, error) {
		n, err := parse(text)
		if err != nil || n < 1 || n&(n-1) != 0 {
			return 0, must("be %s", s.valid)
		}
		return n, nil
	}
	return s
}

// duration accepts a time span from shortest to longest.
func duration(shortest, longest time.Duration) syntax[time.Duration] {
	valid := fmt.Sprintf("a duration from %s to %s, written like 500ms, 30s or 24h", formatDuration(shortest), formatDuration(longest))
	return syntax[time.Duration]{
		placeholder: "DURATION",
		valid:       valid,
		format:      formatDuration,
		parse: func(s string) (time.Duration, error) {
			d, err := time.ParseDuration(s)
			if err != nil || d < shortest || d > longest {
				return 0, must("be %s", valid)
			}
			return d, nil
		},
	}
}

// formatDuration leaves out the zero parts that time.Duration.String writes: 24h, not 24h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size accepts a number of bytes from smallest to largest.
func size(smallest, largest Size) syntax[Size] {
	valid := fmt.Sprintf("a size from %s to %s, such as 512KiB or 4MiB", smallest, largest)
	return syntax[Size]{
		placeholder: "SIZE",
		valid:       valid,
		format:      Size.String,
		parse: func(s string) (Size, error) {
			n, err := parseSize(s)
			if err != nil || n < smallest || n > largest {
				return 0, must("be %s", valid)
			}
			return n, nil
		},
	}
}

// level accepts the names of log levels.
func level() syntax[slog.Level] {
	words := enum("debug", "info", "warn", "error")
	return syntax[slog.Level]{
		placeholder: words.placeholder,
		valid:       words.valid,
		choices:     words.choices,
		format:      func(l slog.Level) string { return strings.ToLower(l.String()) },
		parse: func(s string) (l slog.Level, err error) {
			if _, err = words.parse(s); err == nil {
				err = l.UnmarshalText([]byte(s))
			}
			return l, err
		},
	}
}

// list accepts a comma-separated text of what element accepts, without repeats.
func list[T comparable](element syntax[T], allowEmpty bool) syntax[[]T] {
	s := syntax[[]T]{
		placeholder: element.placeholder + ",…",
		valid:       "a list of " + strings.TrimPrefix(element.valid, "one of "),
		choices:     element.choices,
		isList:      true,
		format: func(all []T) string {
			texts := make([]string, len(all))
			for i, v := range all {
				texts[i] = element.format(v)
			}
			return strings.Join(texts, ",")
		},
	}
	if len(element.choices) > 0 {
		s.placeholder = "LIST"
	}
	s.parse = func(text string) ([]T, error) {
		all, err := parseList(text, element)
		if err == nil && len(all) == 0 && !allowEmpty {
			err = refuse("must not be empty; it is %s", s.valid)
		}
		return all, err
	}
	return s
}

func parseList[T comparable](text string, element syntax[T]) ([]T, error) {
	var all []T
	seen := map[T]bool{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue // a trailing comma, or nothing at all
		}
		v, err := element.parse(part)
		if err != nil {
			return nil, &valueError{must: "must be a list of " + strings.TrimPrefix(element.valid, "one of "), given: part}
		}
		if !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
	}
	return all, nil
}

// cidr accepts a network, or a single address as a network of one.
func cidr() syntax[netip.Prefix] {
	const valid = "networks such as 10.0.0.0/8 or 2001:db8::/32, or single addresses"
	return syntax[netip.Prefix]{
		placeholder: "CIDR",
		valid:       valid,
		format:      netip.Prefix.String,
		parse: func(s string) (netip.Prefix, error) {
			if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
				return netip.PrefixFrom(a, a.BitLen()), nil
			}
			p, err := netip.ParsePrefix(s)
			if err != nil {
				return netip.Prefix{}, must("be %s", valid)
			}
			return p.Masked(), nil
		},
	}
}

// hiddenText gives a syntax of plain texts the type that hides itself.
func hiddenText(placeholder, valid string, check func(string) error) syntax[freshet.Secret] {
	return syntax[freshet.Secret]{
		placeholder: placeholder,
		valid:       valid,
		format:      func(s freshet.Secret) string { return s.Reveal() },
		parse:       func(s string) (freshet.Secret, error) { return freshet.Secret(s), check(s) },
	}
}

// redacted is a URL without its password, or several of them separated by commas. What does not parse is hidden as a whole:
// nobody knows where in it the password is.
func redacted(raw string) string {
	if u, err := url.Parse(raw); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		return redactedURL(raw) // its password may have commas
	}
	parts := strings.Split(raw, ",")
	for i := range parts {
		parts[i] = redactedURL(parts[i])
	}
	return strings.Join(parts, ",")
}

func redactedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return hidden
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "password") { // password, sslpassword
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	if _, hasPassword := u.User.Password(); u.User != nil && !hasPassword && !strings.HasPrefix(u.Scheme, "postgres") {
		u.User = url.User("xxxxx") // a name alone is a token
	}
	return u.Redacted()
}
