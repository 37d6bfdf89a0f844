package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// loadFile reads the YAML file that was named, if any.
func (l *loader) loadFile(path string, env map[string]string) {
	where := "--" + ConfigFlag
	if path == "" {
		path, where = env[ConfigVariable], ConfigVariable
	}
	if path == "" {
		return
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		l.faults.add(where, path, "cannot be read: %s", plainCause(err))
		return
	}
	doc, err := parseYAML(raw)
	if err != nil {
		l.faults = append(l.faults, yamlFault(path, err))
		return
	}
	if doc != nil {
		f := fileReader{loader: l, path: path, lines: map[string]int{}}
		f.group("", doc)
	}
}

// parseYAML returns the one document of the file, or nil if it is empty.
func parseYAML(raw []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: only one YAML document is allowed", more.Line)
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)$`)

func yamlFault(path string, err error) Fault {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		return Fault{Where: path + ":" + m[1], Message: m[2]}
	}
	return Fault{Where: path, Message: text}
}

// fileReader walks the nodes of the file and applies what it finds.
type fileReader struct {
	*loader
	path  string
	lines map[string]int // where each key was seen first
}

// group reads a mapping whose keys all begin with name.
func (f *fileReader) group(name string, n *yaml.Node) {
	if isNull(n) {
		return // a group whose every line is commented out
	}
	if n.Kind != yaml.MappingNode {
		f.faults.add(f.at(n), name, "%s", groupComplaint(name))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if name != "" {
			key = name + "." + key
		}
		f.member(key, n.Content[i], n.Content[i+1])
	}
}

func (f *fileReader) member(key string, at, n *yaml.Node) {
	e, isGroup := entry(key), len(membersOf(key)) > 0
	if first, again := f.lines[key]; again && !isGroup {
		f.faults.add(f.at(at), key, "is set on line %d already", first)
		return
	}
	f.lines[key] = at.Line
	switch {
	case isGroup:
		f.group(key, n)
	case e == nil:
		f.faults.add(f.at(at), key, "is not a setting%s", cmp.Or(didYouMean(key, append(keys(), groups()...)), seeAll))
	default:
		f.setting(e, at, n)
	}
}

func (f *fileReader) setting(e *Entry, at, n *yaml.Node) {
	text, ok := scalar(n)
	if n.Kind == yaml.SequenceNode && e.isList {
		text, ok = sequence(n)
	}
	if !ok {
		f.faulty[e.Key] = true
		f.faults.add(f.at(at), e.Key, "needs %s here: %s", shape(e), e.valid)
		return
	}
	f.apply(e, text, Origin{LayerFile, f.at(at)})
}

func shape(e *Entry) string {
	if e.isList {
		return "a list"
	}
	return "one value"
}

func (f *fileReader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", f.path, n.Line) }

// scalar is the text of a value as it was written: 007 and off stay what they are, whatever YAML takes them for.
func scalar(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && !isNull(n)
}

func sequence(n *yaml.Node) (string, bool) {
	texts := make([]string, len(n.Content))
	for i, element := range n.Content {
		text, ok := scalar(element)
		if !ok {
			return "", false
		}
		texts[i] = text
	}
	return strings.Join(texts, ","), true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func groupComplaint(name string) string {
	if name == "" {
		return "must hold settings as key: value"
	}
	return "is a group of settings; it holds " + strings.Join(membersOf(name), ", ")
}

// membersOf lists the last parts of the keys in a group; empty if there is no such group.
func membersOf(group string) []string {
	var all []string
	for i := range table {
		if rest, ok := strings.CutPrefix(table[i].Key, group+"."); ok {
			all = append(all, rest)
		}
	}
	return all
}
