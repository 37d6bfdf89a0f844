package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newExplain(p *process) *cobra.Command {
	return verb{
		use: "explain TOPIC", short: "Say why a topic delivers what it delivers",
		long: `Ask the server why a topic delivers what it delivers: what it holds, where that came from, who follows it, and what
went wrong lately.`,
		example: `# Why does nothing come?
freshet explain Paris

# All there is to know, for a script
freshet explain Paris -o json

# What it holds
freshet topics document Paris`,
		complete: topicNames,
		run: func(k *call) error {
			topic, err := findTopic(k.ctx, k.c, k.args[0])
			if err != nil {
				return err
			}
			answer, err := k.c.Explain(k.ctx, topic.ID)
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
			return e.write(k.out.p.stdout, topic.Name)
		},
	}.command(p)
}

// explanation is what people are told of the server's answer.
type explanation struct {
	Version   string
	Published time.Time
	Reasons   []struct {
		Message string
		Since   time.Time
		Count   int64
	}
}

func (e *explanation) write(w io.Writer, topic string) error {
	rows := [][]string{{"Topic", topic}}
	if e.Version != "" {
		rows = append(rows, []string{"Newest", e.Version}, []string{"Published", when(e.Published)})
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
