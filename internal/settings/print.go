package settings

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective settings as YAML that Load reads back, with the origin of each value beside it.
// What must not be shown is a comment, so that the output is still a file that works.
func (e *Effective) Print(w io.Writer) error {
	var out strings.Builder
	out.WriteString("# What freshet serve would run with if it were started here and now; a server that runs may have been started otherwise.\n" +
		"# Behind each setting is where it came from. Hidden values are comments.\n")
	group := ""
	for i := range table {
		s := &table[i]
		name := s.Key
		if g, rest, ok := strings.Cut(s.Key, "."); ok {
			if g != group {
				fmt.Fprintf(&out, "%s:\n", g)
			}
			group, name = g, "  "+rest
		}
		line := e.line(s, name)
		fmt.Fprintf(&out, "%-44s # %s\n", line, e.origins[s.Key])
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (e *Effective) line(s *Entry, name string) string {
	actual := s.get(&e.Settings)
	shown := s.show(actual)
	indent := name[:len(name)-len(strings.TrimLeft(name, " "))]
	switch {
	case shown != actual:
		return indent + "# " + strings.TrimLeft(name, " ") + ": " + shown
	case s.Privacy == Hidden:
		return indent + "# " + strings.TrimLeft(name, " ") + ": not set"
	case s.isList:
		return name + ": [" + strings.Join(yamlTexts(strings.Split(actual, ",")), ", ") + "]"
	}
	return name + ": " + yamlText(actual)
}

func yamlTexts(texts []string) []string {
	var all []string
	for _, t := range texts {
		if t != "" {
			all = append(all, yamlText(t))
		}
	}
	return all
}

// yamlText writes a text so that it reads back as itself: plain where that is safe and looks familiar.
func yamlText(text string) string {
	var back yaml.Node
	plain := yaml.Unmarshal([]byte("["+text+"]"), &back) == nil && text != "" && !strings.HasPrefix(text, ":")
	if plain {
		items := back.Content[0].Content
		plain = len(items) == 1 && items[0].Kind == yaml.ScalarNode && items[0].Value == text && !isNull(items[0])
	}
	if plain {
		return text
	}
	quoted := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
	out, err := yaml.Marshal(&quoted)
	if err != nil {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSpace(string(out))
}
