package gateway

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
)

// ipRestriction lets only some addresses in, or keeps some out.
type ipRestriction struct{ in, out []netip.Prefix }

func newIPRestriction(c registry.Config, _ *Gateway) (plugin, error) {
	p := &ipRestriction{}
	var err error
	if p.in, err = registry.Networks(c.List("whitelist")); err != nil {
		return nil, err
	}
	p.out, err = registry.Networks(c.List("blacklist"))
	return p, err
}

var addressRefused = &answer{status: http.StatusForbidden, message: "Your IP address is not allowed"}

// access refuses what it cannot read, too: it cannot tell whether that is allowed.
func (p *ipRestriction) access(x *exchange) *answer {
	client, ok := httpkit.ParseAddress(x.r.RemoteAddr)
	if !ok || contains(p.out, client) || len(p.in) > 0 && !contains(p.in, client) {
		return addressRefused
	}
	return nil
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}
