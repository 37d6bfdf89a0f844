package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/freshet-io/freshet/internal/httpkit"
)

// ip-restriction lets only some addresses in, or keeps some out.
var _ = attachable(kind{
	name:     "ip-restriction",
	priority: 990,
	schema: schema{
		Fields: map[string]field{
			"whitelist": {Type: typeList, check: checkNetworks},
			"blacklist": {Type: typeList, check: checkNetworks},
		},
		check: func(c config) string {
			white, black := len(c.list("whitelist")), len(c.list("blacklist"))
			switch {
			case white > 0 && black > 0:
				return "You cannot set both a whitelist and a blacklist"
			case white+black == 0:
				return "You must set at least a whitelist or blacklist"
			}
			return ""
		},
	},
	configure: func(c config, _ *Gateway) (plugin, error) {
		p := &ipRestriction{}
		var err error
		if p.in, err = networks(c.list("whitelist")); err != nil {
			return nil, err
		}
		p.out, err = networks(c.list("blacklist"))
		return p, err
	},
})

func checkNetworks(v any) string {
	list, _ := v.([]string)
	if _, err := networks(list); err != nil {
		return err.Error()
	}
	return ""
}

// networks reads addresses and CIDR ranges.
func networks(list []string) ([]netip.Prefix, error) {
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

type ipRestriction struct{ in, out []netip.Prefix }

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
