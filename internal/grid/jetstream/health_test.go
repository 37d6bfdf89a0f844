package jetstream

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestANodeIsFitWhileAMajorityAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		h.succeeded()
		time.Sleep(proofAge - time.Nanosecond)
		if err := h.Check(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		if err := h.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("without a word: %v", err)
		}
		h.failed(errors.New("no leader"))
		if err := h.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no leader") {
			t.Errorf("after a failure: %v", err)
		}
		h.succeeded()
		if err := h.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
