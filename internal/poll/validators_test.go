package poll

import (
	"testing"
	"time"
)

func TestAFullRequestComesNowAndThen(t *testing.T) {
	start := time.Now()
	var v validators
	if etag, _ := v.next(start, 0); etag != "" {
		t.Error("nothing was published yet")
	}
	v.keep(&response{etag: "a", lastModified: "b"}, start)
	for i := range fullEvery - 1 {
		if etag, modified := v.next(start, 0); etag != "a" || modified != "b" {
			t.Fatalf("poll %d is a full one", i+1)
		}
	}
	if etag, _ := v.next(start, 0); etag != "" {
		t.Error("validators that are stuck are believed for ever")
	}
	if etag, _ := v.next(start.Add(fullWithin-1), 0); etag != "a" {
		t.Error("it is too early for a full request")
	}
	if etag, _ := v.next(start.Add(fullWithin), 0); etag != "" {
		t.Error("it is time for a full request")
	}
	if etag, _ := v.next(start.Add(time.Minute), 4*time.Minute); etag != "" {
		t.Error("a document that expires after four minutes is asked for in full each minute")
	}
	v.forget()
	if etag, modified := v.next(start, 0); etag != "" || modified != "" {
		t.Error("what was not published is asked for conditionally")
	}
}
