package gateway

import (
	"reflect"
	"testing"
)

// A header that names another one that ends here makes a request go the standard way; the upstream must not see which way
// one came.
func TestAnUpstreamCannotTellTheClientFromTheStandardProxy(t *testing.T) {
	up := newUpstreamServer(t)
	for name, change := range map[string]func(*Options){"unknown client": func(*Options) {}, "trusted proxy": trust("127.0.0.0/8")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change)
			w.register("/stripped", up.URL+"/under", "strip_request_path", "true")
			w.register("/kept", up.URL, "preserve_host", "true")
			for _, target := range []string{"/stripped", "/stripped/a%2Fb//c?x=%zz&y", "/stripped?", "/kept/ä/%41?q=a+b", "/stripped//x"} {
				for _, header := range [][]string{
					{},
					{"User-Agent", "", "Accept-Encoding", "br"},
					{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "h", "X-Forwarded-Port", "7", "X-Forwarded-Prefix", "/p/", "X-Real-Ip", "9.9.9.9"},
					{"Forwarded", "for=1.2.3.4", "X-Freshet-Hops", "3", "X-Consumer-Id", "evil", "X_forwarded_for", "evil"},
					{"Keep-Alive", "9", "Proxy-Authorization", "x", "Proxy-Connection", "x", "Cookie", "a=1", "Cookie", "b=2", "X-Empty", ""},
				} {
					direct := w.upstreamSaw("GET", target, header...)
					standard := w.upstreamSaw("GET", target, append([]string{"Connection", "X-Ends-Here"}, header...)...)
					if !reflect.DeepEqual(direct, standard) {
						t.Errorf("%s with %q:\ndirect %+v\nstandard %+v", target, header, direct, standard)
					}
				}
			}
		})
	}
}
