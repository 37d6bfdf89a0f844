package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestADatabaseThatHangsAfterANoticeHoldsRequestsUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outdated
		o.set()
		began := time.Now()
		for range 10 {
			o.wait(t.Context())
			o.set() // more notices change nothing: the first is still not made up for
		}
		if waited := time.Since(began); waited != outdatedPatience {
			t.Errorf("ten requests waited %v", waited)
		}
		o.clear(o.waiting())
		o.set()
		began = time.Now()
		go o.clear(o.waiting())
		o.wait(t.Context())
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a request waited %v for what was read at once", waited)
		}
	})
}
