package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// output is how a command shows its data: tables for people, JSON for scripts.
type output struct {
	p      *process
	format string
}

var formats = []string{"table", "json"}

func addOutput(p *process, cmd *cobra.Command) *output {
	o := &output{p: p, format: "table"}
	f := cmd.Flags().VarPF(&textFlag{&o.format, "FORMAT"}, "output", "o", "How to show it: table or json")
	f.DefValue = o.format
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return o
}

// check refuses formats that do not exist, before anything is done.
func (o *output) check(cmd *cobra.Command) error {
	if o.format != "table" && o.format != "json" {
		return usage(cmd, "--output must be table or json, not %s", quote(o.format))
	}
	return nil
}

func (o *output) isJSON() bool { return o.format == "json" }

// json shows v, indented for a person who looks at it and on one line for a program.
func (o *output) json(v any) error {
	enc := json.NewEncoder(o.p.stdout)
	enc.SetEscapeHTML(false)
	if isTerminal(o.p.stdout) {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// rows shows a listing. Without rows the table says so on stderr, so that stdout stays data.
func (o *output) rows(v any, head []string, rows [][]string, none string) error {
	if o.isJSON() {
		return o.json(v)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(o.p.stderr, none)
		return err
	}
	return writeTable(o.p.stdout, append([][]string{head}, rows...))
}

// facts shows one thing, a line for each of its properties.
func (o *output) facts(v any, pairs [][]string) error {
	if o.isJSON() {
		return o.json(v)
	}
	return writeTable(o.p.stdout, pairs)
}

func writeTable(w io.Writer, rows [][]string) error {
	var aligned strings.Builder
	tw := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		if _, err := fmt.Fprintln(tw, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(aligned.String()) { // an empty last cell would leave blanks behind
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// plain keeps what others named from steering somebody's terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\ufffd'
		}
		return r
	}, text)
}

// done tells a person, and only a person, that something was done.
func (p *process) done(format string, args ...any) {
	if isTerminal(p.stderr) {
		_, _ = fmt.Fprintf(p.stderr, format+"\n", args...) // nobody to tell if nobody reads
	}
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func millis(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
