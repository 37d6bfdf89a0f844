package server

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

// printBanner tells a person at a terminal what to open next. It is not for programs: those read the ready line.
func printBanner(o *Options, p *ports) {
	b := &banner{bold: "", plain: ""}
	if o.Colour {
		b.bold, b.plain = "\x1b[1m", "\x1b[0m"
	}
	b.printf("\n  %sFreshet %s is ready%s (%s)\n\n", b.bold, o.Version, b.plain, o.Settings.Environment)
	manages := p.gateway != nil && o.Settings.Has(settings.RoleManage)
	if manages {
		b.link("API browser", o.publicURL(p.gateway)+"/api/v1/api-browser/index.html")
	}
	b.link("Health", baseURL("http", p.admin.Addr())+"/readyz")
	if manages {
		b.credentials(o)
		b.session(o, p.gateway)
	}
	if p.subscriber != nil {
		b.printf("\n  Follow a topic:\n    curl -N %s/v1/topics/TOPIC_ID\n", o.publicURL(p.subscriber))
	}
	b.printf("\n  Ctrl-C stops it; requests under way finish first.\n\n")
	_, _ = io.WriteString(o.Banner, b.text.String()) // a banner nobody can read is no reason to stop
}

type banner struct {
	text        strings.Builder
	bold, plain string
}

func (b *banner) printf(format string, args ...any) { fmt.Fprintf(&b.text, format, args...) }

func (b *banner) link(label, value string) { b.printf("  %-13s %s\n", label, value) }

// credentials shows the fixed password, which is no secret, and never one that somebody chose.
func (b *banner) credentials(o *Options) {
	admin := &o.Settings.Admin
	if o.Settings.Environment != settings.Development {
		return
	}
	if admin.Password.Reveal() == freshet.FixedAdminPassword {
		b.link("Sign in as", admin.Email+", password "+freshet.FixedAdminPassword+" (unless you changed it)")
		return
	}
	b.link("Sign in as", admin.Email+", with the password you set")
}

func (b *banner) session(o *Options, gateway *port) {
	b.printf("\n  Get a session token:\n")
	b.printf("    curl -X PUT %s/api/v1/session -H 'Content-Type: application/json' \\\n", o.publicURL(gateway))
	b.printf("      -d '{\"email\": \"%s\", \"password\": \"%s\"}'\n", shellText(o.Settings.Admin.Email), examplePassword(o))
}

func examplePassword(o *Options) string {
	if o.Settings.Environment == settings.Development && o.Settings.Admin.Password.Reveal() == freshet.FixedAdminPassword {
		return freshet.FixedAdminPassword
	}
	return "…"
}

// shellText makes a text safe between single quotes: o'brien@example.com is a fine address.
func shellText(text string) string { return strings.ReplaceAll(text, "'", `'\''`) }

// publicURL is how a person on this machine reaches a listener for clients.
func (o *Options) publicURL(p *port) string {
	if o.Settings.TLS.Certificate != "" {
		return baseURL("https", p.Addr())
	}
	return baseURL("http", p.Addr())
}

func baseURL(scheme string, a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return scheme + "://" + a.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
