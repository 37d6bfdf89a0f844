package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
			return writeTable(k.out.p.stdout, flatten("", answer))
		},
	}.command(p)
}

// flatten turns an answer whose members may grow with every version into lines for people.
func flatten(path string, text json.RawMessage) [][]string {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil && len(members) > 0 {
		names := make([]string, 0, len(members))
		for name := range members {
			names = append(names, name)
		}
		slices.Sort(names)
		var rows [][]string
		for _, name := range names {
			if name != "links" {
				rows = append(rows, flatten(strings.TrimPrefix(path+"."+name, "."), members[name])...)
			}
		}
		return rows
	}
	var items []json.RawMessage
	if json.Unmarshal(text, &items) == nil && len(items) > 0 {
		var rows [][]string
		for i, item := range items {
			rows = append(rows, flatten(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
		return rows
	}
	var plainText string
	if json.Unmarshal(text, &plainText) == nil {
		return [][]string{{path, plainText}}
	}
	return [][]string{{path, string(text)}}
}
