package publish_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/freshet-io/freshet/internal/memory"
	"github.com/freshet-io/freshet/internal/publish"
)

func TestALongBodyTakesAPlaceAndGivesItBack(t *testing.T) {
	bodies := memory.NewSemaphore(memory.Limits{Bytes: 1 << 20, Wait: 5 * time.Second, Queue: 4})
	run(t, publish.Options{Bodies: bodies}, func(h *harness) {
		long := `"` + strings.Repeat("x", 800<<10) + `"`
		post := func(body string, gzipped bool) *http.Response {
			if !gzipped {
				return h.do(request{body: body})
			}
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write([]byte(body)) // into memory
			_ = w.Close()
			return h.do(request{body: packed.String(), headers: map[string]string{"Content-Encoding": "gzip"}})
		}
		for _, gzipped := range []bool{false, true} {
			if r := post(long, gzipped); r.StatusCode != http.StatusNoContent {
				t.Errorf("gzip %v: a long publication got %s", gzipped, r.Status)
			}
			if held, _ := bodies.Held(); held != 0 {
				t.Errorf("gzip %v: %d bytes are held after it", gzipped, held)
			}
		}
		bodies.TryAcquire(900 << 10)
		if r := post(`"short"`, false); r.StatusCode != http.StatusNoContent {
			t.Errorf("a short publication got %s", r.Status)
		}
		began := time.Now()
		for _, gzipped := range []bool{false, true} {
			r := post(long, gzipped)
			if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || r.Header.Get("Connection") != "close" {
				t.Errorf("gzip %v: one more than there is room for got %s, %v", gzipped, r.Status, r.Header)
			}
		}
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("two publications waited for %s", waited)
		}
		if held, waiting := bodies.Held(); held != 900<<10 || waiting != 0 {
			t.Errorf("%d bytes are held and %d wait after refusals", held, waiting)
		}
		time.AfterFunc(time.Second, func() { bodies.Release(900 << 10) })
		if r := post(long, false); r.StatusCode != http.StatusNoContent {
			t.Errorf("a publication that waited got %s", r.Status)
		}
	})
}
