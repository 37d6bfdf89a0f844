package gateway

import (
	"net/http"
	"strings"
)

// appendRequest writes a plain request as its upstream gets it, with the header in no order: the library's way sorts it each time.
func appendRequest(b []byte, r *http.Request, to *upstream) []byte {
	path, prefix := to.target(r.URL)
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, to.path...)
	b = append(b, path...)
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		b = append(b, '?')
		b = append(b, r.URL.RawQuery...)
	}
	host := to.host
	if to.preserveHost && r.Host != "" { // HTTP/1.0 may have none
		host = r.Host
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\n"...)
	for name, values := range r.Header {
		if !isHopByHop(name) && !isForwarding(name) {
			b = appendField(b, name, values)
		}
	}
	told := forwarding(r, prefix)
	for i := range told {
		if told[i] != "" {
			b = appendField(b, forwardingNames[i], told[i:i+1])
		}
	}
	b = appendField(b, "Forwarded", forwarded(r))
	b = appendField(b, hopHeader, nextHop(r))
	return append(b, "\r\n"...)
}

func appendField(b []byte, name string, values []string) []byte {
	for _, v := range values {
		// There is none, since each value was checked when it was read; this is for what is put in later.
		if strings.IndexByte(v, '\n') >= 0 || strings.IndexByte(v, '\r') >= 0 {
			v = lineBreaks.Replace(v)
		}
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, v...)
		b = append(b, "\r\n"...)
	}
	return b
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")
