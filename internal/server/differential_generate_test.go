package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// connection is what a client sends on one connection; see FuzzConnections.
type connection struct {
	toSubscriber bool
	cuts         uint64 // where it is cut into segments; nowhere if 0
	sent         string
}

func (c connection) String() string {
	return fmt.Sprintf("to the subscriber listener: %t, cuts %d, sent %q", c.toSubscriber, c.cuts, c.sent)
}

// randomConnection makes up a connection: mostly of valid requests, some of them damaged. Many begin as most connections go on all the time,
// which is what the fast path is for.
func randomConnection(r *rand.Rand) connection {
	c := connection{toSubscriber: r.IntN(5) == 0}
	request, most := gatewayRequest, 4
	if c.toSubscriber {
		request, most = subscriberRequest, 2
	}
	var usual, all []string
	for !c.toSubscriber && r.IntN(3) > 0 {
		usual = append(usual, usualRequest(r)+"{await}")
	}
	for range r.IntN(most + 1) {
		text := request(r)
		for r.IntN(5) == 0 {
			text = pick(r, mutations...)(r, text)
		}
		all = append(all, text)
	}
	c.sent = strings.Join(all, pick(r, "{await}", "{await}", ""))
	if r.IntN(12) == 0 {
		c.sent = c.sent[:r.IntN(len(c.sent)+1)]
	}
	c.sent = strings.Join(usual, "") + c.sent
	if r.IntN(4) == 0 {
		c.cuts = r.Uint64()
	}
	return c
}

// usualRequest is a request of the kind that comes a thousand times a second.
func usualRequest(r *rand.Rand) string {
	host := "Host: " + pick(r, "localhost", "a.example:8000") + "\r\n"
	extra := pick(r, "", "User-Agent: test/1\r\n", "Accept: */*\r\n", "accept-encoding: gzip\r\n", "Connection: keep-alive\r\n")
	if r.IntN(2) == 0 {
		return "GET /{api}/" + pick(r, "echo", "echo?a=b", "a/b", "cookies", "chunks", "none", "long") + " HTTP/1.1\r\n" + host + extra + "\r\n"
	}
	body := pick(r, `{"a":1}`, `{"a":2}`, `[1,2,3]`, `{"a":`)
	return fmt.Sprintf("POST /publish/v1/topics/{topic} HTTP/1.1\r\n%sContent-Type: application/json\r\nX-Sd-Publisher-Key: {key}\r\n%sContent-Length: %d\r\n\r\n%s", host, extra, len(body), body)
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// build writes a request.
func build(r *rand.Rand, method, target string, fields []string, body string) string {
	fields = append([]string{"Host: " + pick(r, "localhost", "localhost", "localhost", "a.example:8000", "LOCALHOST", "[::1]")}, fields...)
	version := "HTTP/1.1"
	switch r.IntN(25) {
	case 0:
		version = "HTTP/1.0"
		if r.IntN(2) == 0 {
			fields = append(fields, "Connection: keep-alive")
		}
	case 1:
		fields = append(fields, pick(r, "Connection: close", "connection: Close", "Connection: keep-alive, close", "Connection: X-Trace"))
	case 2, 3:
		fields = append(fields, "Connection: keep-alive")
	}
	for range r.IntN(4) {
		fields = append(fields, pick(r, "User-Agent: test/1", "Accept: */*", "accept-encoding: gzip, deflate", "Accept-Language: en", "Cookie: a=1", "Cookie: b=2; c=3",
			"X-Request-Id: 4711", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.7", "X-Trace:", "Origin: https://a.example",
			"Pragma: no-cache", "Cache-Control: no-cache", "TE: trailers", "Authorization: Bearer none", "X-Consumer-Id: evil", "x_under_score: 1",
			"If-None-Match: \"x\"", "Range: bytes=0-3", "Via: 1.1 elsewhere", "X-Latin: \xe4", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
			"Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Upgrade: h2c"))
	}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	switch {
	case body == "" && r.IntN(6) > 0 && method != "POST":
	case r.IntN(4) == 0 && version == "HTTP/1.1":
		return fmt.Sprintf("%s %s %s\r\n%s\r\nTransfer-Encoding: chunked\r\n%s\r\n%s", method, target, version, strings.Join(fields, "\r\n"), expecting(r), chunked(r, body))
	default:
		fields = append(fields, fmt.Sprint("Content-Length: ", len(body)))
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	return fmt.Sprintf("%s %s %s\r\n%s\r\n%s\r\n%s", method, target, version, strings.Join(fields, "\r\n"), expecting(r), body)
}

func expecting(r *rand.Rand) string {
	if r.IntN(20) > 0 {
		return ""
	}
	return "Expect: 100-continue\r\n"
}

func chunked(r *rand.Rand, body string) string {
	var b strings.Builder
	for body != "" {
		n := 1 + r.IntN(len(body))
		fmt.Fprintf(&b, pick(r, "%x", "%X", "0%x", "%x;a=b", "%x ; c=\"d\"")+"\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n" + pick(r, "", "", "X-Sum: 1\r\n") + "\r\n"
}

// gatewayRequest is a publication, a request for an API, or one for what is not there.
func gatewayRequest(r *rand.Rand) string {
	switch n := r.IntN(20); {
	case n < 8:
		return publication(r)
	case n < 18:
		method := pick(r, "GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW")
		path := pick(r, "/echo", "/echo", "", "/", "/chunks", "/none", "/long", "/last", "/hint", "/cookies", "/same", "/a/b//c", "/%41%2f", "/a%zz", "/../up", "/a;b=c")
		query := pick(r, "", "", "", "?", "?a=b&c=d", "?q=%20+x", "?%zz", "?a=b?c#d")
		body := ""
		if method != "GET" && method != "HEAD" || r.IntN(15) == 0 {
			body = pick(r, "", "x", "hello", "\r\n\r\n", "GET /{api}/smuggled HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("long ", 2000))
		}
		return build(r, method, "/{api}"+path+query, nil, body)
	default:
		return build(r, pick(r, "GET", "GET", "HEAD", "POST", "OPTIONS"), pick(r, "/nowhere", "/api/v1/public/nothing", "/", "/publish/v1", "/{api}x", "/api/v1/topics/{topic}", "*"), nil, "")
	}
}

func publication(r *rand.Rand) string {
	method, media := "POST", pick(r, "application/json", "application/json", "application/json", "application/json", "application/json", "application/json; charset=utf-8", "text/plain", "application/json;charset=UTF-8")
	body := pick(r, `{"a":1}`, `{"a":1}`, `{"a":3}`, `{"b":[]}`, `{"a":2,"b":[1,2,3]}`, `1`, `"text"`, `null`, `{}`, `{"a":`, ``, ` {"a":1} `, `{"a":1}{"b":2}`, "{\"a\":\"\xff\"}", `[`+strings.Repeat(`"0123456789",`, 300)+`0]`)
	if r.IntN(100) == 0 {
		body = `"` + strings.Repeat("x", pick(r, 15_000, 17_000, 70_000)) + `"`
	}
	if r.IntN(8) == 0 {
		method, media = "PATCH", "application/merge-patch+json"
	}
	fields := []string{"Content-Type: " + media, pick(r, "X-Sd-Publisher-Key", "X-Sd-Publisher-Key", "x-sd-publisher-key", "X-SD-PUBLISHER-KEY") + ": {key}"}
	switch r.IntN(30) {
	case 0:
		fields = fields[:1]
	case 1:
		fields = fields[1:]
	case 2:
		fields[1] = "X-Sd-Publisher-Key: wrong"
	case 3:
		fields = append(fields, fields[r.IntN(2)])
	case 4:
		fields = append(fields, "If-Match: "+pick(r, "*", `"x-1"`))
	case 5:
		fields = append(fields, "Content-Encoding: "+pick(r, "identity", "gzip"))
	}
	path := pick(r, "/publish/v1/topics/{topic}", "/publish/v1/topics/{topic}", "/publish/latest/topics/{topic}", "/publish/v1/topics/{topic}")
	if r.IntN(20) == 0 {
		path = pick(r, path+"/", path+"?a=b", path+"?", path+"/x", "/publish/v1//topics/{topic}", "/publish/v1/topics/0f8fad5b-d9cb-469f-a165-70867728950e", "/publish/v1/topics/%74", "/publish/v2/topics/{topic}")
	}
	return build(r, method, path, fields, body)
}

func subscriberRequest(r *rand.Rand) string {
	path := pick(r, "/v1/topics/{topic}", "/v1/topics/{topic}", "/v1/topics/{topic}", "/v1/topics/{topic}", "/latest/topics/{topic}", "/v1/%74opics/{topic}", "/v1/topics/none", "/nothing/here", "/", "/v1/topics/%zz", "/v1/topics/0f8fad5b-d9cb-469f-a165-70867728950e")
	var query []string
	for range r.IntN(3) {
		query = append(query, pick(r, "X-Sd-Subscriber-Key={subscriberkey}", "X-Sd-Subscriber-Key={subscriberkey}", "X-Sd-Token={subscriberkey}", "X-Sd-Subscriber-Key=wrong", "X-Sd-Transport=long-poll",
			"X-Sd-Transport=long-poll", "x-sd-transport=long%2Dpoll", "X-Sd-Transport=sse", "evs_preamble=17", "evs_preamble=99999999", "padding=true", "X-Sd-Filter=b", "lastEventId=1-1", "X-Sd-Header=Accept:%20application/json",
			"X-Sd-Subscriber-Key=%zz", "X-Auth-Sd-Ts=1&X-Auth-Sd-S=abc", "a=b", "%zz", "X-Sd-Compress=true"))
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	var fields []string
	for range r.IntN(3) {
		fields = append(fields, pick(r, "X-Sd-Subscriber-Key: {subscriberkey}", "Accept: text/event-stream", "Accept: application/json", "X-Sd-Compress: true", "Accept-Encoding: gzip", "Last-Event-ID: 1-1", "X-Varnish: 1", "X-Sd-Transport: long-poll"))
	}
	return build(r, pick(r, "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "POST"), path, fields, "")
}

// mutations damage a request.
var mutations = []func(r *rand.Rand, request string) string{
	inHead(func(r *rand.Rand, head string, at int) string { // another case
		return head[:at] + strings.ToUpper(head[at:min(len(head), at+12)]) + head[min(len(head), at+12):]
	}),
	inHead(func(r *rand.Rand, head string, at int) string { return head[:at] + strings.ToLower(head[at:]) }),
	atColon(func(r *rand.Rand) string { return pick(r, " :", "\t:", ":", ":\t", ":  ", "::", ": \t ", " : ") }),
	atLine(func(r *rand.Rand) string { return pick(r, "\n", "\r", "\r\r\n", "\n\r\n") }),
	atLine(func(r *rand.Rand) string { return pick(r, "\r\n ", "\r\n\t", "\r\n X: y\r\n", " \r\n") }),
	atLine(func(r *rand.Rand) string {
		return pick(r, "\r\nContent-Length: 3\r\n", "\r\nContent-Length: 0\r\n", "\r\ncontent-length: 7\r\n", "\r\nContent-Length: +7\r\n", "\r\nContent-Length: 7, 7\r\n", "\r\nContent-Length:\r\n",
			"\r\nContent-Length: 99999999999999999999\r\n", "\r\nContent-Length: 0x7\r\n", "\r\nContent-Length: -1\r\n", "\r\nContent_Length: 3\r\n")
	}),
	atLine(func(r *rand.Rand) string {
		return pick(r, "\r\nTransfer-Encoding: chunked\r\n", "\r\nTransfer-Encoding: identity\r\n", "\r\nTransfer-Encoding: gzip, chunked\r\n", "\r\nTransfer-Encoding:\tchunked\r\n", "\r\nTransfer-Encoding: xchunked\r\n",
			"\r\nTransfer-Encoding : chunked\r\n", "\r\ntransfer-encoding: CHUNKED\r\n", "\r\nTransfer-Encoding: \x0bchunked\r\n")
	}),
	atLine(func(r *rand.Rand) string {
		return pick(r, "\r\nHost: other\r\n", "\r\nHost:\r\n", "\r\nX: \x00\r\n", "\r\nX: \x7f\r\n", "\r\n\x00: x\r\n", "\r\nno colon\r\n", "\r\n: no name\r\n", "\r\nX(): y\r\n", "\r\nConnection: close\r\n",
			"\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", "\r\nExpect: 100-continue\r\n", "\r\nExpect: something\r\n", "\r\nTrailer: X-Sum\r\n", "\r\nHttp2-Settings: AAMAAABkAAQAAP__\r\n")
	}),
	atLine(func(r *rand.Rand) string {
		return fmt.Sprintf("\r\nX-Long: %s\r\n", strings.Repeat("y", pick(r, 3000, 4100, 8100, 15_000, 40_000)))
	}),
	atLine(func(r *rand.Rand) string { return "\r\n" + strings.Repeat("X-Many: 1\r\n", pick(r, 50, 99, 101, 300)) }),
	func(r *rand.Rand, request string) string { // absolute form
		return strings.Replace(request, " /", pick(r, " http://localhost/", " http://a.example:8000/", " HTTP://localhost/", " //a/", " https://localhost/", " http:///", " \x01/"), 1)
	},
	func(r *rand.Rand, request string) string { // another version
		return strings.Replace(request, "HTTP/1.1", pick(r, "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.1 ", " HTTP/1.1", "HTTP/1", "HTTP/11", ""), 1)
	},
	func(r *rand.Rand, request string) string {
		return pick(r, "\r\n", "\n", " ", "\r\n\r\n", "\x00", "\r") + request
	},
	func(r *rand.Rand, request string) string { return request + pick(r, "\r\n", "\n", "x", "\x00") },
	func(r *rand.Rand, request string) string { // a byte
		at := r.IntN(len(request) + 1)
		return request[:at] + string([]byte{byte(r.UintN(256))}) + request[min(len(request), at+r.IntN(2)):]
	},
	func(r *rand.Rand, request string) string { // a part twice, or not at all
		from := r.IntN(len(request) + 1)
		to := min(len(request), from+r.IntN(30))
		if r.IntN(2) == 0 {
			return request[:from] + request[to:]
		}
		return request[:to] + request[from:]
	},
	func(r *rand.Rand, request string) string { return strings.Replace(request, "\r\n", "\n", -1) },
	func(r *rand.Rand, request string) string { return request[:r.IntN(len(request)+1)] },
}

// inHead makes a mutation of one that changes something behind a place in the head.
func inHead(change func(r *rand.Rand, head string, at int) string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, request string) string {
		head, rest, _ := strings.Cut(request, "\r\n\r\n")
		return change(r, head, r.IntN(len(head)+1)) + "\r\n\r\n" + rest
	}
}

// replaceOne replaces one of the places where something is.
func replaceOne(r *rand.Rand, request, what, with string) string {
	n := strings.Count(request, what)
	if n == 0 {
		return request
	}
	at := 0
	for range r.IntN(n) {
		at += strings.Index(request[at:], what) + len(what)
	}
	at += strings.Index(request[at:], what)
	return request[:at] + with + request[at+len(what):]
}

func atColon(with func(*rand.Rand) string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, request string) string { return replaceOne(r, request, ":", with(r)) }
}

func atLine(with func(*rand.Rand) string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, request string) string { return replaceOne(r, request, "\r\n", with(r)) }
}
