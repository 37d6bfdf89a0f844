package router

import (
	"fmt"
	"slices"
	"testing"
)

func TestNamesThatAreRecordedAreToldOnce(t *testing.T) {
	var k recordedKeys
	if k.list() != nil {
		t.Error("there are none yet")
	}
	k.add("a")
	k.add("b")
	told := k.list()
	k.add("c")
	if !slices.Equal(told, []string{"a", "b"}) {
		t.Errorf("what was told changed to %v", told)
	}
	k.drop(told)
	if left := k.list(); !slices.Equal(left, []string{"c"}) || !slices.Equal(told, []string{"a", "b"}) {
		t.Errorf("left are %v, told were %v", left, told)
	}
	for i := range 2 * maxRecorded {
		k.add(fmt.Sprint(i))
	}
	if left := k.list(); len(left) != maxRecorded || left[len(left)-1] != fmt.Sprint(2*maxRecorded-1) {
		t.Errorf("%d names are kept, the last is %s", len(left), left[len(left)-1])
	}
}
