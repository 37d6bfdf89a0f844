package gateway

import (
	"net/http"
	"strings"

	"github.com/freshet-io/freshet/internal/registry"
)

// cors opens an API to pages of other origins.
type cors struct {
	always    []mark // on every answer
	preflight []mark // on answers to OPTIONS
	others    []mark // on the rest
	echo      bool   // whether a preflight is allowed the headers it asks for
	goesOn    bool   // whether preflights are passed on
}

func newCORS(c registry.Config, _ *Gateway) (plugin, error) {
	p := &cors{goesOn: c.Flag("preflight_continue")}
	origin := c.Text("origin")
	if origin == "" {
		origin = "*"
	}
	add := func(to *[]mark, name, value string) { *to = append(*to, mark{name, []string{value}}) }
	add(&p.always, "Access-Control-Allow-Origin", origin)
	if origin != "*" {
		add(&p.always, "Vary", "Origin")
		// With every origin allowed, credentials are not: browsers refuse the two together, and rightly.
		if c.Flag("credentials") {
			add(&p.always, "Access-Control-Allow-Credentials", "true")
		}
	}
	methods := "GET,HEAD,PUT,PATCH,POST,DELETE"
	if list := c.List("methods"); len(list) > 0 {
		methods = strings.Join(list, ",")
	}
	add(&p.preflight, "Access-Control-Allow-Methods", methods)
	if list := c.List("headers"); len(list) > 0 {
		add(&p.preflight, "Access-Control-Allow-Headers", strings.Join(list, ","))
	} else {
		p.echo = true
	}
	if age, ok := c.Number("max_age"); ok {
		add(&p.preflight, "Access-Control-Max-Age", itoa(age))
	}
	if list := c.List("exposed_headers"); len(list) > 0 {
		add(&p.others, "Access-Control-Expose-Headers", strings.Join(list, ","))
	}
	return p, nil
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
