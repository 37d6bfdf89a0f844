package freshet

import (
	"encoding/json"
	"time"
)

// SourceFailure is what is wrong with the data source of a topic. It is content: whoever polls writes it down where every
// node can read it, and each tells its own subscribers.
type SourceFailure struct {
	Kind  Kind
	Msg   string    // may be shown; names no address and no credential
	Since time.Time // when the outage began; tells one outage from the next
	Fatal bool      // streams end: there is nothing to show, or nothing to hope for
}

// SourceValue is the name under which the failure of a topic's source is kept while it lasts.
func SourceValue(topicID string) string { return "source/" + topicID }

// sourceKinds are the kinds a source can fail with, by the names they travel under between nodes of different versions.
var sourceKinds = map[string]Kind{
	"failed":       SourceFailed,
	"unreachable":  SourceUnreachable,
	"unauthorized": SourceUnauthorized,
	"forbidden":    SourceForbidden,
	"expired":      SourceExpired,
	"unknown_host": SourceUnknownHost,
	"unreadable":   SourceUnreadable,
	"gone":         TopicGone,
	"quota":        DocumentLimit,
}

type sourceFailureForm struct {
	Kind  string `json:"kind"`
	Msg   string `json:"message"`
	Since int64  `json:"since_ms"`
	Fatal bool   `json:"fatal,omitempty"`
}

// Text returns the form that ParseSourceFailure reads.
func (f *SourceFailure) Text() string {
	form := sourceFailureForm{Kind: "failed", Msg: f.Msg, Since: f.Since.UnixMilli(), Fatal: f.Fatal}
	for name, kind := range sourceKinds {
		if kind == f.Kind {
			form.Kind = name
		}
	}
	text, err := json.Marshal(form)
	if err != nil {
		panic(err) // strings, a number and a boolean
	}
	return string(text)
}

// ParseSourceFailure reads what Text wrote. A kind that this version does not know is SourceFailed; text that is none
// is no failure.
func ParseSourceFailure(text string) (*SourceFailure, bool) {
	var form sourceFailureForm
	if text == "" || json.Unmarshal([]byte(text), &form) != nil {
		return nil, false
	}
	kind, known := sourceKinds[form.Kind]
	if !known {
		kind = SourceFailed
	}
	return &SourceFailure{Kind: kind, Msg: form.Msg, Since: time.UnixMilli(form.Since), Fatal: form.Fatal}, true
}

// Err is the failure as an error for subscribers.
func (f *SourceFailure) Err() error { return &Error{Kind: f.Kind, Msg: f.Msg} }
