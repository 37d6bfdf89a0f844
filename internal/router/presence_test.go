package router

import (
	"errors"
	"testing"
)

func TestTheGridIsToldOfTheFirstReaderAndOfTheLast(t *testing.T) {
	var p presence
	joined, left := 0, 0
	join := func() (func(), error) {
		joined++
		return func() { left++ }, nil
	}
	refused := errors.New("no way to the grid")
	if err := p.enter(func() (func(), error) { return nil, refused }); !errors.Is(err, refused) {
		t.Fatalf("a reader of whom nobody was told: %v", err)
	}
	for range 3 {
		if err := p.enter(join); err != nil {
			t.Fatal(err)
		}
	}
	p.exit()
	p.exit()
	if joined != 1 || left != 0 {
		t.Errorf("one reader is left of three: told %d times that there are some and %d times that there are none", joined, left)
	}
	p.exit()
	if left != 1 {
		t.Error("nobody is left, and the grid does not know")
	}
	if err := p.enter(join); err != nil || joined != 2 {
		t.Errorf("who comes back is not told of: %v", err)
	}
}
