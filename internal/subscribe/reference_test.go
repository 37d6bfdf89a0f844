package subscribe

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite generated files")

const referencePage = "../../docs/events.md"

func TestTheReferenceOfEventsIsUpToDate(t *testing.T) {
	var b bytes.Buffer
	if err := Reference(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(referencePage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("docs/events.md is stale; -update rewrites it. Page (-), tables (+):\n%s", diff)
	}
}

func TestTheReferenceExplainsEveryCodeThatIsSent(t *testing.T) {
	known := map[int]bool{}
	for _, e := range codeTable {
		if known[e.code] {
			t.Errorf("%d is explained twice", e.code)
		}
		known[e.code] = true
		if e.meaning == "" || e.when == "" || strings.HasSuffix(e.when, ".") {
			t.Errorf("%d: %q, %q", e.code, e.meaning, e.when)
		}
	}
	for kind, code := range codes {
		if !known[code] {
			t.Errorf("%d, of kind %d, is not explained", code, kind)
		}
	}
	if !slices.IsSortedFunc(codeTable, func(a, b codeEntry) int { return a.code - b.code }) {
		t.Error("the codes are not in order")
	}
}
