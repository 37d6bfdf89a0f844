package subscribe

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/freshet-io/freshet/internal/sse"
)

// codeEntry explains a code of an error event to whoever meets it.
type codeEntry struct {
	code    int
	meaning string
	when    string
}

// codeTable has every code, in order. The reference is written from it, and a test holds it against codes.
var codeTable = []codeEntry{
	{40000, "Bad request", "The target URL or a parameter cannot be understood, or a filter was asked for on a topic of snapshots"},
	{40001, "Invalid credentials format", "The key has characters that no key can have, or the signature is not encoded as one"},
	{40100, "Unauthorized", "No key where one is required, a key of another app, no signature where one is required, or an app that does not allow subscribing to a URL"},
	{40110, "Credentials error", "Nobody has this key, or the signature is wrong"},
	{40111, "Credentials revoked", "The key was renewed; the app's owner has the new one"},
	{40112, "Credentials expired", "The signature is too old"},
	{40120, "Account disabled", "An admin disabled the account of the topic's owner"},
	{40121, "Account restricted", "Too many connections at once, of the account, the app or the server; or a URL that would need a topic more than the quota allows"},
	{40122, "Account blocked", "The account's messages of this month are used up"},
	{40400, "Resource not found", "There is nothing at this path"},
	{40401, "Topic not found", "There is no such topic"},
	{40500, "Method not allowed", "Only GET, HEAD and OPTIONS are answered"},
	{50000, "Internal error", "Our fault, or the server is just going away; try again"},
	{50001, "Timeout error", "The first document did not come in time"},
	{60000, "Topic in error", "The topic was deleted, or cannot publish any more; or the target's newest document is more than the quota `document_bytes` allows"},
	{60001, "Data source in error", "The target answered with an error, or broke off"},
	{60100, "Data source connection error", "The target cannot be reached, its address is not allowed, or its certificate is not trusted"},
	{60101, "Data source credentials error", "The target asks for credentials (401)"},
	{60102, "Data source credentials revoked", "The target refuses the credentials (403)"},
	{60103, "Data source credentials expired", "The target says that the credentials expired"},
	{60400, "Data source host unknown", "The name of the target's host cannot be resolved"},
	{61500, "Unsupported data source format", "The target's answer is no strict JSON, is too large, or is no array of items on an item topic"},
}

// entryOf returns what the table says of a code. Every code that is sent is there.
func entryOf(code int) *codeEntry {
	i, _ := slices.BinarySearchFunc(codeTable, code, func(e codeEntry, code int) int { return e.code - code })
	return &codeTable[i]
}

// ending says what follows an error of the code.
func ending(code int) string {
	switch {
	case code == 60000:
		return "ends; over the quota it goes on once there is a document"
	case code >= 60101 && code <= 60103:
		return "goes on once there is a document; ends before, and where the target's URL was subscribed to"
	case code >= 60000:
		return "goes on once there is a document; ends before"
	case code >= 50000:
		return "ends; connect again"
	case code == 40121, code == 40122:
		return "ends; later it may help to connect again"
	}
	return "ends; connecting again does not help"
}

const referenceHead = `# Events and error codes

<!-- Written by subscribe.Reference from the tables in internal/subscribe. Change those, not this. -->

A stream is opened with ` + "`GET {subscriber}/v1/topics/{topic_id}`" + ` (or ` + "`GET {subscriber}/{target URL}`" + ` where an app allows it) and answered
with status 200 and ` + "`Content-Type: %s`" + `, also when something is wrong: errors are events. Whoever cannot read streams asks with
` + "`X-Sd-Transport: long-poll`" + ` and gets a JSON array of ` + "`{id, event, data}`" + `, or 204 after %s of silence.

## Events

| Event | When | Data | Has an id |
|---|---|---|---|
| ` + "`snapshot`" + ` | first, unless the client resumes and a patch leads on; at every change for clients that send ` + "`Accept: application/json`" + `; when a document is replaced as a whole | the whole document | yes |
| ` + "`patch`" + ` | at every change after that | a JSON Patch (RFC 6902) of ` + "`add`, `replace` and `remove`" + `, never with the root path | yes |
| ` + "`error`" + ` | when something is wrong | an object, described below | no |
| ` + "`data`" + ` | instead of ` + "`snapshot`" + ` for clients that send the deprecated ` + "`X-Sd-Token`" + ` | the whole document | yes |

- Lines end with LF, an event has exactly one ` + "`data:`" + ` line of compact JSON, and one empty line ends it.
- An id is ` + "`<epoch>-<version>`" + `. Versions rise by one with every change; the epoch changes when history was lost. Sent back as
  ` + "`Last-Event-ID`" + ` (or the parameter ` + "`lastEventId`" + `), it brings one event that leads from there to the newest document, or nothing if
  that is the newest.
- A comment such as ` + "`%s`" + ` keeps an idle stream open, every 10 s unless the server is set otherwise. A client that hears nothing for
  25 s should connect again.
- A slow client is not sent every version: it gets one event that brings it up to date.

## Requests

| Header or parameter | Meaning |
|---|---|
| ` + "`X-Sd-Subscriber-Key`" + ` | the app's subscriber key; required in production |
| ` + "`X-Sd-Filter`" + ` | only these items of an item topic, separated by commas |
| ` + "`Accept: application/json`" + ` | whole documents instead of patches |
| ` + "`X-Sd-Compress: true`" + ` | compress, with what ` + "`Accept-Encoding`" + ` names: gzip or deflate |
| ` + "`X-Sd-Transport: long-poll`" + ` | one answer instead of a stream |
| ` + "`Last-Event-ID`, `lastEventId`" + ` | go on from there |
| ` + "`X-Auth-Sd-Ts`, `X-Auth-Sd-S`" + ` | a signature, for apps that require one: of the topic's path, or of the target's URL with its whole query |
| ` + "`X-Sd-Header: Name: value`" + ` | parameter only, may be repeated: a header for the target |

All of them work as query parameters too, for clients that cannot set headers; ` + "`Accept`" + ` then is ` + "`X-Sd-Header=Accept: application/json`" + `.

## Error codes

The data of an ` + "`error`" + ` event: ` + "`datetime`, `code`, `category`, `message`, `status`, `sessionId`" + `. Programs should look at ` + "`code` and `category`" + `
only; ` + "`status`" + ` is deprecated, ` + "`message`" + ` is for people, ` + "`sessionId`" + ` for whoever runs the server, who finds it in the log. An error that ends the stream comes with a
` + "`retry:`" + ` of %s, because clients connect again by themselves.
`

// Reference writes the documentation of events and error codes as Markdown.
func Reference(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, referenceHead, sse.ContentType, defaultLongPoll, strings.TrimSpace(sse.Heartbeat), fatalRetry)
	section := ""
	for _, e := range codeTable {
		if c := category(e.code); c != section {
			section = c
			fmt.Fprintf(&out, "\n### %s\n\n| Code | Meaning | When | The stream |\n|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&out, "| %d | %s | %s | %s |\n", e.code, e.meaning, e.when, ending(e.code))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
