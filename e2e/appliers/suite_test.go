package appliers

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// A suiteCase is one record of the public test suite: Expected if the patch applies, Error if it must not.
type suiteCase struct {
	Comment  string
	Doc      json.RawMessage
	Patch    json.RawMessage
	Expected json.RawMessage
	Error    string
	Disabled bool
}

func TestOurApplierPassesThePublicTestSuite(t *testing.T) {
	requirePackages(t)
	for _, file := range []string{"tests.json", "spec_tests.json"} {
		text, err := os.ReadFile("node_modules/json-patch-test-suite/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []suiteCase
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatal(err)
		}
		if len(cases) < 10 {
			t.Fatalf("%s has only %d cases", file, len(cases))
		}
		for i, c := range cases {
			if c.Patch == nil || c.Disabled {
				continue // comments between the cases, and what the suite itself has given up
			}
			t.Run(fmt.Sprintf("%s %d %s", file, i, c.Comment), func(t *testing.T) { c.check(t) })
		}
	}
}

func (c suiteCase) check(t *testing.T) {
	got, err := jsonpatch.Apply(parse(t, c.Doc), c.Patch, jsonpatch.Limits{})
	if c.Error != "" {
		if err == nil {
			t.Fatalf("no error (%s): %s", c.Error, got.Bytes())
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Expected != nil && !jsonpatch.Equal(got, parse(t, c.Expected)) {
		t.Fatalf("got %s, want %s", got.Bytes(), c.Expected)
	}
}
