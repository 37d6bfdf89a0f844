package registry

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Kind is a plugin that can be attached to an API: what it is called and how it may be configured. The gateway runs it.
type Kind struct {
	Name   string
	Does   string // what it does with calls, as a predicate
	Schema Schema
}

// kinds has every plugin, in the order in which they run on a request. What limits or lists consumers comes after key-auth, which
// finds out who they are.
var kinds = []Kind{cors, keyAuth, ipRestriction, requestSizeLimiting, rateLimiting}

// Kinds returns every plugin, in the order in which they run.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindNames returns what they are called.
func KindNames() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].Name
	}
	return names
}

// SchemaOf returns how a plugin may be configured, or nil if there is none of the name.
func SchemaOf(name string) *Schema {
	if kind := kindNamed(name); kind != nil {
		return &kind.Schema
	}
	return nil
}

func kindNamed(name string) *Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// cors opens an API to pages of other origins.
var cors = Kind{
	Name: "cors",
	Does: "answers browsers of other origins",
	Schema: Schema{
		NoConsumer: true,
		Fields: map[string]Field{
			"origin":             {Type: typeText, check: forHeader("origin")},
			"headers":            {Type: typeList, check: forHeader("headers")},
			"exposed_headers":    {Type: typeList, check: forHeader("exposed_headers")},
			"methods":            {Type: typeList, Enum: []string{"HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"}},
			"max_age":            {Type: typeNumber},
			"credentials":        {Type: typeFlag, Default: false},
			"preflight_continue": {Type: typeFlag, Default: false},
		},
	},
}

// forHeader refuses what cannot be said in a header.
func forHeader(name string) func(v any) string {
	return func(v any) string {
		text, _ := v.(string)
		list, _ := v.([]string)
		if !isHeaderValue(text) || !isHeaderValue(strings.Join(list, "")) {
			return name + " " + invalid
		}
		return ""
	}
}

// keyAuth asks for a consumer's key, in the query or in a header.
var keyAuth = Kind{
	Name: "key-auth",
	Does: "asks for a key",
	Schema: Schema{
		NoConsumer: true,
		Fields: map[string]Field{
			"key_names":        {Type: typeList, Required: true, Default: []string{"apikey"}, check: checkKeyNames},
			"hide_credentials": {Type: typeFlag, Default: false},
		},
	},
}

func checkKeyNames(v any) string {
	list, _ := v.([]string)
	if len(list) == 0 || slices.Contains(list, "") {
		return "key_names is required"
	}
	return ""
}

// ipRestriction lets only some addresses in, or keeps some out.
var ipRestriction = Kind{
	Name: "ip-restriction",
	Does: "lets only some addresses in or keeps some out",
	Schema: Schema{
		Fields: map[string]Field{
			"whitelist": {Type: typeList, check: checkNetworks},
			"blacklist": {Type: typeList, check: checkNetworks},
		},
		check: func(c Config) string {
			white, black := len(c.List("whitelist")), len(c.List("blacklist"))
			switch {
			case white > 0 && black > 0:
				return "You cannot set both a whitelist and a blacklist"
			case white+black == 0:
				return "You must set at least a whitelist or blacklist"
			}
			return ""
		},
	},
}

func checkNetworks(v any) string {
	list, _ := v.([]string)
	if _, err := Networks(list); err != nil {
		return err.Error()
	}
	return ""
}

// Networks reads addresses and CIDR ranges.
func Networks(list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			a = a.Unmap()
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("invalid ip or range: %q", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// requestSizeLimiting bounds request bodies.
var requestSizeLimiting = Kind{
	Name: "request-size-limiting",
	Does: "bounds request bodies",
	Schema: Schema{
		Fields: map[string]Field{
			"allowed_payload_size": {Type: typeNumber, Default: int64(128), check: checkPayloadSize}, // megabytes
		},
	},
}

const maxPayload = 1 << 30 // megabytes: more would overflow, and is no limit

func checkPayloadSize(v any) string {
	if n, _ := v.(int64); n <= 0 || n > maxPayload {
		return "allowed_payload_size must be greater than zero"
	}
	return ""
}

// periods of rate-limiting, the shortest first.
var periods = [...]string{"second", "minute", "hour", "day", "month", "year"}

// rateLimiting limits how often a consumer, or an address where nobody is known, may call an API.
var rateLimiting = Kind{
	Name: "rate-limiting",
	Does: "allows so many calls",
	Schema: Schema{
		Fields: map[string]Field{
			"second": {Type: typeNumber}, "minute": {Type: typeNumber}, "hour": {Type: typeNumber},
			"day": {Type: typeNumber}, "month": {Type: typeNumber}, "year": {Type: typeNumber},
		},
		check: checkLimits,
	},
}

func checkLimits(c Config) string {
	given := false
	for i, period := range periods {
		n, ok := c.Number(period)
		if !ok {
			continue
		}
		given = true
		if n <= 0 {
			return fmt.Sprintf("Value for %s must be greater than zero", period)
		}
		for _, longer := range periods[i+1:] {
			if m, ok := c.Number(longer); ok && m < n {
				return fmt.Sprintf("The limit for %s cannot be lower than the limit for %s", longer, period)
			}
		}
	}
	if !given {
		return "You need to set at least one limit: second, minute, hour, day, month, year"
	}
	return ""
}
