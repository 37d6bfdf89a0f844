package gateway

import (
	"net/http"
	"strings"
)

// cors opens an API to pages of other origins.
var _ = attachable(kind{
	name:     "cors",
	priority: 2000,
	schema: schema{
		NoConsumer: true,
		Fields: map[string]field{
			"origin":             {Type: typeText, check: forHeader("origin")},
			"headers":            {Type: typeList, check: forHeader("headers")},
			"exposed_headers":    {Type: typeList, check: forHeader("exposed_headers")},
			"methods":            {Type: typeList, Enum: []string{"HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"}},
			"max_age":            {Type: typeNumber},
			"credentials":        {Type: typeFlag, Default: false},
			"preflight_continue": {Type: typeFlag, Default: false},
		},
	},
	configure: func(c config, _ *Gateway) (plugin, error) { return newCORS(c), nil },
})

// forHeader refuses what cannot be said in a header.
func forHeader(name string) func(v any) string {
	return func(v any) string {
		text, _ := v.(string)
		list, _ := v.([]string)
		if !isHeaderValue(text) || !isHeaderValue(strings.Join(list, "")) {
			return name + " has an invalid value"
		}
		return ""
	}
}

type cors struct {
	always    []mark // on every answer
	preflight []mark // on answers to OPTIONS
	others    []mark // on the rest
	echo      bool   // whether a preflight is allowed the headers it asks for
	goesOn    bool   // whether preflights are passed on
}

func newCORS(c config) *cors {
	p := &cors{goesOn: c.flag("preflight_continue")}
	origin := c.text("origin")
	if origin == "" {
		origin = "*"
	}
	add := func(to *[]mark, name, value string) { *to = append(*to, mark{name, []string{value}}) }
	add(&p.always, "Access-Control-Allow-Origin", origin)
	if origin != "*" {
		add(&p.always, "Vary", "Origin")
		// With every origin allowed, credentials are not: browsers refuse the two together, and rightly.
		if c.flag("credentials") {
			add(&p.always, "Access-Control-Allow-Credentials", "true")
		}
	}
	methods := "GET,HEAD,PUT,PATCH,POST,DELETE"
	if list := c.list("methods"); len(list) > 0 {
		methods = strings.Join(list, ",")
	}
	add(&p.preflight, "Access-Control-Allow-Methods", methods)
	if list := c.list("headers"); len(list) > 0 {
		add(&p.preflight, "Access-Control-Allow-Headers", strings.Join(list, ","))
	} else {
		p.echo = true
	}
	if age, ok := c.number("max_age"); ok {
		add(&p.preflight, "Access-Control-Max-Age", itoa(age))
	}
	if list := c.list("exposed_headers"); len(list) > 0 {
		add(&p.others, "Access-Control-Expose-Headers", strings.Join(list, ","))
	}
	return p
}

func (p *cors) access(x *exchange) *answer {
	x.header = append(x.header, p.always...)
	if x.r.Method != http.MethodOptions {
		x.header = append(x.header, p.others...)
		return nil
	}
	x.header = append(x.header, p.preflight...)
	if asked := x.r.Header.Get("Access-Control-Request-Headers"); p.echo && asked != "" {
		x.set("Access-Control-Allow-Headers", asked)
	}
	if p.goesOn {
		return nil
	}
	return &answer{status: http.StatusNoContent}
}
