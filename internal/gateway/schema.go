package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// config is the configuration of a plugin as JSON keeps it: strings, float64, bool and []any.
type config map[string]any

func (c config) text(name string) string { s, _ := c[name].(string); return s }

func (c config) flag(name string) bool { b, _ := c[name].(bool); return b }

func (c config) number(name string) (int64, bool) {
	switch n := c[name].(type) {
	case float64:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

func (c config) list(name string) (all []string) {
	switch list := c[name].(type) {
	case []string:
		return list
	case []any:
		for _, v := range list {
			s, _ := v.(string)
			all = append(all, s)
		}
	}
	return all
}

// fieldType is what a field holds; its name appears in the messages of the dialect.
type fieldType string

const (
	typeText   fieldType = "string"
	typeNumber fieldType = "number"
	typeFlag   fieldType = "boolean"
	typeList   fieldType = "array"
)

// field is one entry of a plugin's configuration.
type field struct {
	Type     fieldType `json:"type"`
	Required bool      `json:"required,omitempty"`
	Default  any       `json:"default,omitempty"`
	Enum     []string  `json:"enum,omitempty"`
	// check returns what is wrong with a value of the type, or nothing.
	check func(v any) string
}

// schema is what a plugin's configuration may hold.
type schema struct {
	Fields     map[string]field `json:"fields"`
	NoConsumer bool             `json:"no_consumer,omitempty"`
	// check returns what is wrong with the configuration as a whole, or nothing.
	check func(c config) string
}

// complete checks what was given and adds defaults. The keys of the faults are as the dialect names them.
func (s *schema) complete(given map[string]any) (config, faults) {
	c, f := config{}, faults{}
	for name, v := range given {
		spec, known := s.Fields[name]
		switch {
		case !known:
			f.add("config."+name, "%s is an unknown field", name)
		case v == nil:
		default:
			if value, wrong := spec.read(name, v); wrong != "" {
				f.add("config."+name, "%s", wrong)
			} else {
				c[name] = value
			}
		}
	}
	for name, spec := range s.Fields {
		if _, ok := c[name]; ok || f["config."+name] != "" {
			continue
		}
		if spec.Default != nil {
			c[name] = spec.Default
		} else if spec.Required {
			f.add("config."+name, "%s is required", name)
		}
	}
	if len(f) == 0 && s.check != nil {
		if wrong := s.check(c); wrong != "" {
			f.add("config", "%s", wrong)
		}
	}
	return c, f
}

func (spec *field) read(name string, v any) (value any, wrong string) {
	value, ok := spec.Type.read(v)
	if !ok {
		return nil, name + " is not a " + string(spec.Type)
	}
	if wrong := spec.allowed(value); wrong != "" {
		return nil, wrong
	}
	if spec.check != nil {
		if wrong := spec.check(value); wrong != "" {
			return nil, wrong
		}
	}
	return value, ""
}

func (spec *field) allowed(value any) string {
	if spec.Enum == nil {
		return ""
	}
	list, _ := value.([]string)
	for _, v := range list {
		if !slices.Contains(spec.Enum, v) {
			return fmt.Sprintf(`"%s" is not allowed. Allowed values are: "%s"`, v, strings.Join(spec.Enum, `", "`))
		}
	}
	return ""
}

// read converts a value of a form or of JSON.
func (t fieldType) read(v any) (any, bool) {
	switch t {
	case typeText:
		return readText(v)
	case typeNumber:
		return readNumber(v)
	case typeFlag:
		return readFlag(v)
	}
	return readList(v)
}

// maxText is far more than any name or URL needs, and less than what a database index can hold.
const maxText = 2048

func readText(v any) (any, bool) {
	s, ok := v.(string)
	s = strings.TrimSpace(s)
	return s, ok && len(s) <= maxText && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

func readNumber(v any) (any, bool) {
	text, ok := v.(string)
	if n, isNumber := v.(json.Number); isNumber {
		text, ok = n.String(), true
	}
	if !ok {
		return nil, false
	}
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, n <= maxNumber && n >= -maxNumber
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxNumber {
		return nil, false
	}
	return int64(n), true
}

// maxNumber is the largest that JSON readers agree about.
const maxNumber = 1 << 53

func readFlag(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		s := strings.ToLower(strings.TrimSpace(v))
		return s == "true", s == "true" || s == "false"
	}
	return nil, false
}

// readList takes a list of texts, or one text with commas.
func readList(v any) (any, bool) {
	list := []string{}
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return list, true
		}
		for part := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(part))
		}
	case []any:
		for _, element := range v {
			s, ok := element.(string)
			if !ok {
				return nil, false
			}
			list = append(list, strings.TrimSpace(s))
		}
	default:
		return nil, false
	}
	for _, s := range list {
		if _, ok := readText(s); !ok {
			return nil, false
		}
	}
	return list, true
}

// faults is what is wrong with a request, by field, as the dialect shows it.
type faults map[string]string

// add keeps the first fault of each field.
func (f faults) add(field, format string, args ...any) {
	if f[field] == "" {
		f[field] = fmt.Sprintf(format, args...)
	}
}

func (f faults) addAll(more faults) { maps.Copy(f, more) }
