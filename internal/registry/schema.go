package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Config is the configuration of a plugin as JSON keeps it: strings, float64, bool and []any.
type Config map[string]any

// Text returns a text, or nothing.
func (c Config) Text(name string) string { s, _ := c[name].(string); return s }

// Flag returns whether it is set.
func (c Config) Flag(name string) bool { b, _ := c[name].(bool); return b }

// Number returns a whole number, if there is one.
func (c Config) Number(name string) (int64, bool) {
	switch n := c[name].(type) {
	case float64:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// List returns a list of texts.
func (c Config) List(name string) (all []string) {
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

// FieldType is what a field holds. Its name appears in the texts of faults.
type FieldType string

// The types.
const (
	typeText   FieldType = "string"
	typeNumber FieldType = "number"
	typeFlag   FieldType = "boolean"
	typeList   FieldType = "array"
)

// Field is one entry of a plugin's configuration.
type Field struct {
	Type     FieldType `json:"type"`
	Required bool      `json:"required,omitempty"`
	Default  any       `json:"default,omitempty"`
	Enum     []string  `json:"enum,omitempty"`
	// check returns what is wrong with a value of the type, or nothing.
	check func(v any) string
}

// Schema is what a plugin's configuration may hold. Its JSON is what operators see.
type Schema struct {
	Fields     map[string]Field `json:"fields"`
	NoConsumer bool             `json:"no_consumer,omitempty"` // it cannot be for one consumer alone
	// check returns what is wrong with the configuration as a whole, or nothing.
	check func(c Config) string
}

// complete checks what was given and adds defaults.
func (s *Schema) complete(given Config, f *faults) Config {
	c := Config{}
	before := len(*f)
	for name, v := range given {
		spec, known := s.Fields[name]
		switch {
		case !known:
			f.say("config."+name, "%s "+unknown, name)
		case v == nil:
		default:
			if value, wrong := spec.read(name, v); wrong != "" {
				f.say("config."+name, "%s", wrong)
			} else {
				c[name] = value
			}
		}
	}
	for name, spec := range s.Fields {
		if _, ok := c[name]; ok || f.has("config."+name) {
			continue
		}
		if spec.Default != nil {
			c[name] = spec.Default
		} else if spec.Required {
			f.say("config."+name, "%s is required", name)
		}
	}
	if len(*f) == before && s.check != nil {
		if wrong := s.check(c); wrong != "" {
			f.say("config", "%s", wrong)
		}
	}
	return c
}

func (spec *Field) read(name string, v any) (value any, wrong string) {
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

func (spec *Field) allowed(value any) string {
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
func (t FieldType) read(v any) (any, bool) {
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
