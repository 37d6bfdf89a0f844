package subscribe

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshet-io/freshet/client"
)

var update = flag.Bool("update", false, "rewrite generated files")

func TestTheReferenceOfEventsIsUpToDate(t *testing.T) {
	var b bytes.Buffer
	if err := Reference(&b); err != nil {
		t.Fatal(err)
	}
	checkFile(t, "docs/events.md", b.String())
}

// checkFile compares a generated file with what it should be, and rewrites it when asked to.
func checkFile(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("../..", name)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s is stale; -update rewrites it. File (-), tables (+):\n%s", name, diff)
	}
}

func TestTheReferenceExplainsEveryCodeThatIsSent(t *testing.T) {
	known := map[int]bool{}
	for _, e := range codeTable {
		if known[e.Number] {
			t.Errorf("%d is explained twice", e.Number)
		}
		known[e.Number] = true
		if e.Meaning == "" || e.When == "" || strings.HasSuffix(e.When, ".") || e.Stream == "" || e.Final != (e.Back == "") || e.Final && e.Renew {
			t.Errorf("%+v", e)
		}
		if codes[e.Kind] != e.Number {
			t.Errorf("%d has the kind of %d", e.Number, codes[e.Kind])
		}
	}
	for kind, code := range codes {
		if !known[code] {
			t.Errorf("%d, of kind %d, is not explained", code, kind)
		}
	}
	if !slices.IsSortedFunc(codeTable, func(a, b Code) int { return a.Number - b.Number }) {
		t.Error("the codes are not in order")
	}
}

// numbers lists the codes that are so.
func numbers(is func(Code) bool) string {
	var all []string
	for _, c := range codeTable {
		if is(c) {
			all = append(all, strconv.Itoa(c.Number))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func isFinal(c Code) bool   { return c.Final }
func isPassing(c Code) bool { return !c.Final }
func isRenewed(c Code) bool { return c.Renew }

// TestTheTablesOfClientsAreUpToDate: each client stands alone, so each has its own copy of what the table says.
func TestTheTablesOfClientsAreUpToDate(t *testing.T) {
	var table strings.Builder
	table.WriteString(`// Code generated from the table in internal/subscribe/code.go by make golden. DO NOT EDIT.

package client

// outcomes says what a client does about each code of error events.
var outcomes = map[int]outcome{
`)
	for _, c := range codeTable {
		outcome := "passing"
		switch {
		case c.Final:
			outcome = "final"
		case c.Renew:
			outcome = "renew"
		}
		fmt.Fprintf(&table, "\t%d: %s, // %s\n", c.Number, outcome, c.Meaning)
	}
	table.WriteString("}\n")
	source, err := format.Source([]byte(table.String()))
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, "client/outcomes.go", string(source))

	script := `// Generated from the table in internal/subscribe/code.go by make golden. Do not edit.

/** Codes of error events after which a client stops: connecting again would meet the same error. */
export const final: readonly number[] = ` + numbers(isFinal) + `;

/** Codes after which it connects again. */
export const passing: readonly number[] = ` + numbers(isPassing) + `;

/** Of those, the ones that need new credentials first. */
export const renewing: readonly number[] = ` + numbers(isRenewed) + `;

/** Whether an error is final. One that nobody knows yet is, if it is the client's. */
export const isFinal = (code: number): boolean => final.includes(code) || (code >= 40_000 && code < 50_000 && !passing.includes(code));
`
	checkFile(t, "sdk/ts/src/codes.ts", script)

	const example = "examples/live.js"
	page, err := os.ReadFile("../../" + example)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^const final = .*$`)
	if len(line.FindAll(page, -1)) != 1 {
		t.Fatal(example + " has no line of final codes")
	}
	checkFile(t, example, line.ReplaceAllString(string(page), "const final = "+numbers(isFinal)+";"))
}

// TestWhatIsFinal says it in words other than the table's: what time, a fresh signature or the source itself can mend passes.
func TestWhatIsFinal(t *testing.T) {
	passing := []int{40112, 40121, 40122, 50000, 50001, 60001, 60100, 60101, 60102, 60103, 60400, 61500}
	for _, c := range codeTable {
		if c.Final == slices.Contains(passing, c.Number) {
			t.Errorf("%d: final %t", c.Number, c.Final)
		}
		if e := (client.StreamError{Code: c.Number, Category: category(c.Number)}); e.Fatal() != c.Final || e.Renew() != c.Renew {
			t.Errorf("%d: the Go client says %t, %t", c.Number, e.Fatal(), e.Renew())
		}
	}
	for unknown, final := range map[int]bool{40999: true, 50999: false, 60999: false} {
		if e := (client.StreamError{Code: unknown, Category: category(unknown)}); e.Fatal() != final || e.Renew() {
			t.Errorf("%d: the Go client says %t", unknown, e.Fatal())
		}
	}
}
