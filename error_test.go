package freshet

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestAnErrorThatNobodyClassifiedIsInternal(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want Kind
	}{
		"none": {nil, Internal}, "strange": {io.EOF, Internal}, "direct": {Errorf(NotFound, "x"), NotFound},
		"wrapped":   {fmt.Errorf("outer: %w", Errorf(Conflict, "x")), Conflict},
		"the outer": {Wrap(Unavailable, Errorf(NotFound, "x"), "y"), Unavailable},
	} {
		if got := KindOf(test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestAnErrorsTextIsForTheLog(t *testing.T) {
	e := &Error{Kind: Invalid, Msg: "No", Fields: []FieldError{{"a", "is required"}, {"b.c", "is long"}}, Err: io.EOF}
	if got := e.Error(); got != "No: a is required; b.c is long: EOF" {
		t.Error(got)
	}
	if !errors.Is(e, io.EOF) {
		t.Error("the cause is lost")
	}
	if got := Errorf(NotFound, "There is no %s", "app").Error(); got != "There is no app" {
		t.Error(got)
	}
}

func TestFaultsOfSeveralChecksAreOneAnswer(t *testing.T) {
	if err := Together(); err != nil {
		t.Error(err)
	}
	if err := Together(nil, nil); err != nil {
		t.Error(err)
	}
	wantFaults(t, "two", Together(InvalidField("a", "x"), nil, InvalidField("b", "y")), map[string]string{"a": "x", "b": "y"})
	wantFaults(t, "the first of one field", Together(InvalidField("a", "x"), InvalidField("a", "y")), map[string]string{"a": "x"})
	for name, other := range map[string]error{"another kind": Errorf(Conflict, "x"), "no fields": Errorf(Invalid, "x"), "strange": io.EOF} {
		if got := Together(InvalidField("a", "x"), other); got != other {
			t.Errorf("%s: %v", name, got)
		}
	}
	if err := InvalidField("a", "%s is 100%%", "it"); !strings.Contains(err.Error(), "it is 100%") {
		t.Error(err)
	}
}

func TestEveryKindIsListedOnce(t *testing.T) {
	seen := map[Kind]bool{}
	for _, k := range Kinds() {
		if seen[k] {
			t.Errorf("%d twice", k)
		}
		seen[k] = true
	}
	if !seen[Internal] || !seen[TopicGone] || len(seen) != int(numKinds) {
		t.Errorf("%d kinds", len(seen))
	}
}
