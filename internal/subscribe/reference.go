package subscribe

import (
	"fmt"
	"io"
	"strings"

	"github.com/freshet-io/freshet/internal/sse"
)

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

An error is **final** or it **passes**. After a final one a client stops and says so: connecting again would meet the same error. After one
that passes it connects again, when the last column says. A code that is not listed here is final if it is a ` + "`ClientException`" + `. The SDK, the Go client,
` + "`freshet tail`" + `, the console and the examples decide by this table.
`

// Reference writes the documentation of events and error codes as Markdown.
func Reference(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, referenceHead, sse.ContentType, defaultLongPoll, strings.TrimSpace(sse.Heartbeat), fatalRetry)
	section := ""
	for _, e := range codeTable {
		if c := category(e.Number); c != section {
			section = c
			fmt.Fprintf(&out, "\n### %s\n\n| Code | Meaning | When | The stream | Connect again |\n|---|---|---|---|---|\n", section)
		}
		back := "never: final"
		if !e.Final {
			back = e.Back
		}
		fmt.Fprintf(&out, "| %d | %s | %s | %s | %s |\n", e.Number, e.Meaning, e.When, e.Stream, back)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
