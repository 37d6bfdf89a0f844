package appliers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// install makes sure that the locked packages are there, once.
var install = sync.OnceValue(func() error {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("these tests need %s: %w", tool, err)
		}
	}
	if _, err := os.Stat("node_modules/.package-lock.json"); err == nil {
		return nil
	}
	if out, err := exec.Command("npm", "ci", "--ignore-scripts").CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

func requirePackages(t *testing.T) {
	t.Helper()
	if err := install(); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, text []byte) *jsonpatch.Document {
	t.Helper()
	d, err := jsonpatch.Parse(text, jsonpatch.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// A transition is two versions of a document and the patch between them.
type transition struct {
	old, new *jsonpatch.Document
	patch    []byte
}

// transitions returns a few thousand of them: random documents, changed at random, compared by Diff and by Next.
func transitions(t *testing.T) []transition {
	var out []transition
	for seed := range uint64(400) {
		m := maker{rand.New(rand.NewPCG(seed, 3))}
		v := m.value(4)
		old := parse(t, m.text(v))
		for range 4 {
			v = m.changed(v, 4)
			next := parse(t, m.text(v))
			if c := jsonpatch.Diff(old, next); c.Kind == jsonpatch.Patched {
				out = append(out, transition{old, next, c.Patch})
			}
			doc, c, err := jsonpatch.Next(old, next.Bytes(), jsonpatch.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == jsonpatch.Patched {
				out = append(out, transition{old, next, c.Patch})
			}
			old = doc
		}
	}
	return out
}

func TestPublicAppliersArriveAtThePublishedDocument(t *testing.T) {
	requirePackages(t)
	cases := transitions(t)
	if len(cases) < 1000 {
		t.Fatalf("only %d patches to try", len(cases))
	}
	cmd := exec.Command("node", "apply.mjs")
	cmd.Stderr = os.Stderr
	cmd.Stdin = requests(cases)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(stdout)
	for _, c := range cases {
		line, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatalf("node stopped: %v", err)
		}
		checkAnswer(t, c, line)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// requests returns what apply.mjs reads.
func requests(cases []transition) io.Reader {
	var b bytes.Buffer
	for _, c := range cases {
		fmt.Fprintf(&b, `{"old":%s,"patch":%s}`+"\n", c.old.Bytes(), c.patch)
	}
	return &b
}

func checkAnswer(t *testing.T, c transition, line []byte) {
	t.Helper()
	var answer map[string]struct {
		Document json.RawMessage
		Error    string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if len(answer) != 2 {
		t.Fatalf("answers of %d appliers", len(answer))
	}
	for name, a := range answer {
		if a.Error != "" {
			t.Fatalf("%s: %s\nold   %s\nnew   %s\npatch %s", name, a.Error, c.old.Bytes(), c.new.Bytes(), c.patch)
		}
		if !jsonpatch.Equal(parse(t, a.Document), c.new) {
			t.Fatalf("%s arrives at\n%s\nold   %s\nnew   %s\npatch %s", name, a.Document, c.old.Bytes(), c.new.Bytes(), c.patch)
		}
	}
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "://") {
			t.Errorf("%s contains an address", name)
		}
	}
}
