package poll

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoComesBackInTimeKeepsTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a attendance
		if !a.isOnce() {
			t.Error("nobody was ever there")
		}
		gone := 0
		a.leaveAfter(10*time.Second, func() { gone++ })
		if a.isOnce() {
			t.Error("somebody was there")
		}
		time.Sleep(9 * time.Second)
		a.arrive()
		time.Sleep(time.Minute)
		synctest.Wait()
		if gone != 0 || !a.present {
			t.Error("it is given up, and somebody came back")
		}
		a.present = false
		a.leaveAfter(10*time.Second, func() { gone++ })
		time.Sleep(time.Minute)
		synctest.Wait()
		if gone != 1 {
			t.Error("nobody came back, and it goes on")
		}
	})
}

func TestOneQuestionIsAskedAtATimeAndTheLastIsNotLost(t *testing.T) {
	var l lookup
	if !l.begin() || !l.next(true) {
		t.Fatal("the first one asks")
	}
	for range 2 {
		if l.begin() {
			t.Error("two ask at the same time")
		}
	}
	if !l.next(true) {
		t.Error("what came up meanwhile is not asked")
	}
	if l.next(true) {
		t.Error("it is asked once more than needed")
	}
	if !l.begin() || l.next(false) {
		t.Error("a source that ended asks")
	}
	if !l.begin() {
		t.Error("nobody asks any more")
	}
}
