package router

import (
	"testing"

	"github.com/freshet-io/freshet/internal/jsonpatch"
)

// TestTheBodyOfAPatchIsReadOnce: a publication may take many attempts, against others who publish or because it is looked at twice.
func TestTheBodyOfAPatchIsReadOnce(t *testing.T) {
	for name, test := range map[string]struct {
		form  Form
		body  string
		reads bool
	}{
		"a JSON Patch":                {JSONPatch, `[{"op":"add","path":"/a","value":1}]`, true},
		"a merge patch":               {MergePatch, `{"a":1}`, true},
		"what is no JSON":             {JSONPatch, `[{"op":`, false},
		"what is no JSON Patch":       {JSONPatch, `{"a":1}`, false},
		"what is no JSON, to merge":   {MergePatch, `{"a":`, false},
		"a patch longer than allowed": {MergePatch, `{"a":"` + string(make([]byte, 100)) + `"}`, false},
	} {
		p := Publication{Form: test.form, Body: []byte(test.body)}
		first, firstErr := p.decode(jsonpatch.Limits{MaxBytes: 64})
		if (firstErr == nil) != test.reads {
			t.Errorf("%s: %v", name, firstErr)
		}
		p.Body = nil // it would be an error to read it again
		second, secondErr := p.decode(jsonpatch.Limits{MaxBytes: 64})
		if first != second || firstErr != secondErr {
			t.Errorf("%s is read again", name)
		}
	}
}
