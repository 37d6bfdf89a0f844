package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newExplain(p *process) *cobra.Command {
	return verb{
		use: "explain TOPIC", short: "Say why a topic delivers what it delivers",
		long: `Ask the server why a topic delivers what it delivers: what it holds, where that came from, who follows it, and what
went wrong lately. An administrator can name a live connection instead, by its identifier.`,
		example: `# Why does nothing come?
freshet explain Paris

# Why does this subscriber get nothing? (connections: GET /api/v1/admin/connections)
freshet explain 5f0c2a19-1-77-1204

# What it holds
freshet topics document Paris`,
		complete: topicNames,
		run: func(k *call) error {
			name, answer, err := askWhy(k, k.args[0])
			if err != nil {
				return err
			}
			if k.out.isJSON() {
				return k.out.json(answer)
			}
			var e explanation
			if err := json.Unmarshal(answer, &e); err != nil {
				return err
			}
			return e.write(k.out.p.stdout, name)
		},
	}.command(p)
}

// connectionID is the form of what the server calls a live connection: a node, and numbers of its own.
var connectionID = regexp.MustCompile(`^[0-9a-f]{8}-([0-9]+-[0-9]+|g)-[0-9]+$`)

func followers(n int64) string {
	switch n {
	case 0:
		return "nobody"
	case 1:
		return "1 subscriber"
	}
	return fmt.Sprintf("%d subscribers", n)
}

// askWhy returns the server's answer, and the name of the topic that it is about.
func askWhy(k *call, what string) (topic string, answer json.RawMessage, err error) {
	if connectionID.MatchString(what) {
		answer, err = k.c.ExplainConnection(k.ctx, what)
		return "", answer, err
	}
	found, err := findTopic(k.ctx, k.c, what)
	if err != nil {
		return "", nil, err
	}
	answer, err = k.c.Explain(k.ctx, found.ID)
	return found.Name, answer, err
}

// explanation is what people are told of the server's answer.
type explanation struct {
	Topic      string
	Connection *struct {
		Remote string
		Since  time.Time
		Bytes  int64
	}
	Version     string
	Published   time.Time
	Subscribers *int64 // nil: a server that does not say
	Reasons     []struct {
		Message string
		Since   time.Time
		Count   int64
	}
}

func (e *explanation) write(w io.Writer, topic string) error {
	rows := [][]string{{"Topic", cmp.Or(topic, e.Topic)}}
	if c := e.Connection; c != nil {
		rows = append(rows, []string{"From", c.Remote}, []string{"Connected", when(c.Since)}, []string{"Sent", fmt.Sprintf("%d bytes", c.Bytes)})
	}
	if e.Version != "" {
		rows = append(rows, []string{"Newest", e.Version}, []string{"Published", when(e.Published)})
	}
	if e.Subscribers != nil {
		rows = append(rows, []string{"Followed by", followers(*e.Subscribers)})
	}
	for i, r := range e.Reasons {
		about := []string{"", r.Message}
		if i == 0 {
			about[0] = "Because"
		}
		var more []string
		if r.Count > 1 {
			more = append(more, fmt.Sprintf("%d times", r.Count))
		}
		if !r.Since.IsZero() {
			more = append(more, "since "+when(r.Since))
		}
		if len(more) > 0 {
			about[1] += " (" + strings.Join(more, ", ") + ")"
		}
		rows = append(rows, about)
	}
	if len(e.Reasons) == 0 {
		rows = append(rows, []string{"Verdict", "everything is as it should be; what is published now arrives"})
	}
	return writeTable(w, rows)
}
