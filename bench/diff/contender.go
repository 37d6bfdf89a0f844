package diff

import (
	"encoding/json"
	"fmt"

	"github.com/bytedance/sonic"
	"github.com/freshet-io/freshet/internal/jsonpatch"
	"github.com/wI2L/jsondiff"
)

// A Contender does one step of a stream at a time.
type Contender struct {
	Name string
	// Diffs tells libraries that compare from those that only validate.
	Diffs bool
	// start prepares a run over a stream and returns the step: to version i, from the one before. A step returns the
	// patch, or the whole document where the patch would be longer.
	start func(s Stream) func(i int) []byte
}

// Start prepares a run over a stream.
func (c Contender) Start(s Stream) func(i int) []byte { return c.start(s) }

// The contenders, ours first.
var (
	Ours = Contender{"freshet", true, startOurs}
	// OursPlain reads every byte: no guidance by the version before.
	OursPlain = Contender{"freshet, unguided", true, startPlain}
	// WI2L decodes both texts, as its CompareJSON does.
	WI2L = Contender{"wI2L/jsondiff", true, startWI2L()}
	// WI2LCached is given the previous version decoded.
	WI2LCached = Contender{"wI2L/jsondiff, previous decoded", true, startWI2LCached}
	// WI2LSmall is its best for size.
	WI2LSmall  = Contender{"wI2L/jsondiff LCS+Rationalize", true, startWI2L(jsondiff.LCS(), jsondiff.Rationalize())}
	SonicValid = Contender{"sonic Valid", false, startValid(sonic.Valid)}
	JSONValid  = Contender{"encoding/json Valid", false, startValid(json.Valid)}
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func startOurs(s Stream) func(i int) []byte {
	first := must(jsonpatch.Parse(s.Versions[0], jsonpatch.Limits{}))
	prev := first
	return func(i int) []byte {
		if i == 1 {
			prev = first
		}
		doc, change, err := jsonpatch.Next(prev, s.Versions[i], jsonpatch.Limits{})
		if err != nil {
			panic(err)
		}
		prev = doc
		return event(change, doc)
	}
}

func startPlain(s Stream) func(i int) []byte {
	first := must(jsonpatch.Parse(s.Versions[0], jsonpatch.Limits{}))
	prev := first
	return func(i int) []byte {
		if i == 1 {
			prev = first
		}
		doc := must(jsonpatch.Parse(s.Versions[i], jsonpatch.Limits{}))
		change := jsonpatch.Diff(prev, doc)
		prev = doc
		return event(change, doc)
	}
}

// event returns what subscribers would get.
func event(c jsonpatch.Change, doc *jsonpatch.Document) []byte {
	if c.Kind == jsonpatch.Whole {
		return doc.Bytes()
	}
	return c.Patch
}

func startWI2L(opts ...jsondiff.Option) func(Stream) func(i int) []byte {
	return func(s Stream) func(i int) []byte {
		return func(i int) []byte {
			return marshal(must(jsondiff.CompareJSON(s.Versions[i-1], s.Versions[i], opts...)))
		}
	}
}

func startWI2LCached(s Stream) func(i int) []byte {
	var first, prev any
	if err := json.Unmarshal(s.Versions[0], &first); err != nil {
		panic(err)
	}
	var differ jsondiff.Differ
	return func(i int) []byte {
		if i == 1 {
			prev = first
		}
		var next any
		if err := json.Unmarshal(s.Versions[i], &next); err != nil {
			panic(err)
		}
		differ.Reset()
		differ.Compare(prev, next)
		prev = next
		return marshal(differ.Patch())
	}
}

func marshal(p jsondiff.Patch) []byte {
	if len(p) == 0 {
		return nil
	}
	return must(json.Marshal(p))
}

func startValid(valid func([]byte) bool) func(Stream) func(i int) []byte {
	return func(s Stream) func(i int) []byte {
		return func(i int) []byte {
			if !valid(s.Versions[i]) {
				panic(fmt.Sprintf("%s: version %d is refused", s.Name, i))
			}
			return nil
		}
	}
}
