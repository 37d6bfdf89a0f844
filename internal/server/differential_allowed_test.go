package server

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// allowed are differences that do no harm. Each is a text that one of the servers has, and what both are taken for.
var allowed = []struct {
	why  string
	when func(connection) bool // nil for always
	text *regexp.Regexp
	as   string
}{
	{
		why:  "net/http does not repeat an empty body's length to an upstream where the method needs none; the fast path passes it on",
		text: regexp.MustCompile(`(the upstream read (?:GET|HEAD|OPTIONS) .*\n(?:    .*\n)*?)    Content-Length: \["0"(?: "0")*\]\n`), as: "$1",
	},
	{
		why:  "net/http passes on the first of several User-Agents; the fast path all of them",
		text: regexp.MustCompile(`(User-Agent: \["[^"]*")(?: "[^"]*")+`), as: "$1",
	},
	{
		why:  "a subscriber whose target is no URL gets an event that browsers can read; net/http cannot be told to send one",
		when: func(c connection) bool { return c.toSubscriber && !hasURL(c.sent) },
		text: regexp.MustCompile(`HTTP/1.1 200 OK.*\n(?:    .*\n)*a stream: ".*event: error.*\n|HTTP/1.1 400 Bad Request, length -1.*\n(?:    .*\n)*then it is closed\n`),
		as:   "refused\n",
	},
	{
		why: "net/http waits for the beginning of HTTP/2 before it looks at less; behind requests of the fast path, it has seen nothing before",
		when: func(c connection) bool {
			sent := strings.TrimRight(c.sent, "\r\n")
			last := sent[max(strings.LastIndex(sent, "\r\n\r\n"), strings.LastIndex(sent, "{await}"), 0):]
			return len(last) < len("{await}")+len("PRI * HTTP/2.0")
		},
		text: regexp.MustCompile(`then silence\n(HTTP/1.1 400 Bad Request, length -1, )`), as: "$1",
	},
	{
		why:  "of several reasons to refuse a request, which one is told depends on how much of it whoever looks first has read",
		when: func(c connection) bool { return c.cuts > 0 },
		text: regexp.MustCompile(`HTTP/1.1 400 Bad Request, length (?:-1|\d+), coding \[\], last: true\n(?:    .*\n)*then it is closed\n`), as: "refused\n",
	},
	{
		why:  "a lone CR or LF behind a request is refused by whoever sees it first, and they use other words",
		when: func(c connection) bool { return behindHead.MatchString(c.sent) },
		text: regexp.MustCompile(`HTTP/1.1 400 Bad Request, length (?:-1|\d+), .*last: true\n(?:    .*\n)*then it is closed\n`), as: "refused\n",
	},
}

// hasURL reports whether the target of the first request is a URL.
func hasURL(sent string) bool {
	fields := strings.SplitN(strings.TrimLeft(sent, "\r\n"), " ", 3)
	if len(fields) < 3 {
		return false
	}
	_, err := url.ParseRequestURI(fields[1])
	return err == nil
}

// undecided are connections that are not compared, since their answers depend on what net/http has seen of a connection before.
var undecided = []struct {
	why string
	is  func(connection) bool
}{
	{
		"what net/http has read ahead of a head does not count, so where its limit lies depends on how much that is",
		func(c connection) bool {
			return slices.ContainsFunc(strings.Split(c.sent, "\r\n\r\n"), func(head string) bool {
				return len(head) > maxHeaderBytes && len(head) < 2*maxHeaderBytes
			})
		},
	},
	{
		"whether a body that is no gzip was read to its end when that shows depends on how it arrives",
		func(c connection) bool {
			return c.cuts > 0 && strings.Contains(strings.ToLower(c.sent), "content-encoding: gzip")
		},
	},
	{
		"net/http skips a lone CR or LF behind a POST, and only there; behind one that the fast path answered it knows of none",
		func(c connection) bool {
			return c.cuts > 0 && loneEnd.MatchString(c.sent) || awaitedEnd.MatchString(c.sent)
		},
	},
}

var (
	loneEnd    = regexp.MustCompile(`\n\n|[^\r]\n|\r[^\n]|\r$`)
	behindHead = regexp.MustCompile(`\r\n\r\n(\r\n)*(\n|\r[^\n]|\r$)`)
	awaitedEnd = regexp.MustCompile(`\{await\}(\r\n)*(\n|\r[^\n]|\r$)`)
)

func isUndecided(c connection) bool {
	for _, u := range undecided {
		if u.is(c) {
			return true
		}
	}
	return false
}

// forgive takes out what may differ.
func forgive(c connection, outcome string) string {
	for _, a := range allowed {
		if a.when == nil || a.when(c) {
			outcome = a.text.ReplaceAllString(outcome, a.as)
		}
	}
	return outcome
}
