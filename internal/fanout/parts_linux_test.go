package fanout

import (
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestNoWorkGoesUnnoticed: whoever adds work either is seen before the loop sleeps, or wakes it.
func TestNoWorkGoesUnnoticed(t *testing.T) {
	in := newInbox()
	const writers, each = 8, 500
	var adding sync.WaitGroup
	for range writers {
		adding.Go(func() {
			for range each {
				in.add(func(w *work) { w.tasks = append(w.tasks, func() {}) })
			}
		})
	}
	for done := 0; done < writers*each; {
		if in.mayRest() {
			select {
			case <-in.woken:
			case <-time.After(time.Minute):
				t.Fatalf("asleep with %d of %d done", done, writers*each)
			}
		}
		in.sleeping.Store(false)
		done += len(in.take(time.Now()).tasks)
	}
	adding.Wait()
}

func TestNewsOfAWaitingGroupWakeNobody(t *testing.T) {
	in, now := newInbox(), time.Now()
	var m members
	in.addNews(&m, true)
	in.addNews(&m, true)
	if news := in.take(now).news; len(news) != 1 || m.noted || !m.news.Equal(m.notedAt) {
		t.Fatalf("%d news, noted %v", len(news), m.noted)
	}
	m.notBefore = now.Add(time.Second)
	in.addNews(&m, true)
	in.take(now)
	in.addNews(&m, true)
	if news := in.take(now).news; len(news) != 0 {
		t.Error("a group that must wait is noted again")
	}
	in.forget(&m)
	in.addNews(&m, true)
	if news := in.take(now).news; len(news) != 1 {
		t.Error("news after the wait are lost")
	}
}

func TestAClosedInboxAcceptsNothing(t *testing.T) {
	in := newInbox()
	arrive := func() bool { return in.add(func(w *work) { w.arrivals = append(w.arrivals, new(conn)) }) }
	if !arrive() || !in.add(func(w *work) { w.stop = true }) || arrive() {
		t.Error("work is accepted until the loop shall stop")
	}
	if rest := in.close(); len(rest.arrivals) != 1 || arrive() {
		t.Errorf("%d were left", len(rest.arrivals))
	}
}

// TestEveryGroupWithNewsGetsAPass: whatever comes in which order, news are followed by a whole pass that began after them.
func TestEveryGroupWithNewsGetsAPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s scheduler
		now := time.Now()
		l := &loop{f: &Fanout{loops: loops{pace: 30 * time.Microsecond}}}
		groups := make([]members, 4)
		type state struct{ news, begun, brought int } // how many news there were: in all, when the pass began, before the last whole pass
		states := make(map[*members]*state)
		for i := range groups {
			groups[i].loop = l
			for range rapid.SampledFrom([]int{1, fewConns, 2 * sliceLen}).Draw(t, "members") {
				groups[i].add(new(conn))
			}
			states[&groups[i]] = new(state)
		}
		serve := func(m *members) bool {
			st := states[m]
			if m.next == 0 {
				st.begun = st.news
			}
			m.next = min(m.next+sliceLen, len(m.conns))
			if m.isDone() {
				st.brought = st.begun
			}
			return !m.isDone()
		}
		step := func() {
			s.beginWaiting(now, func(*members) {})
			s.round(now, serve)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if i := rapid.IntRange(-1, len(groups)-1).Draw(t, "news"); i >= 0 {
				states[&groups[i]].news++
				s.add(&groups[i], now)
			}
			step()
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 5 * time.Millisecond}).Draw(t, "later"))
		}
		for range 20 {
			now = now.Add(time.Hour)
			step()
		}
		for i := range groups {
			m, st := &groups[i], states[&groups[i]]
			if st.brought != st.news || m.serving || m.waiting || m.again {
				t.Fatalf("group %d was brought %d of %d news", i, st.brought, st.news)
			}
		}
		if s.isBusy() || len(s.waiting) > 0 {
			t.Fatal("the scheduler has work without news")
		}
	})
}

func TestADrainIsSpreadOverItsTime(t *testing.T) {
	var all table
	now := time.Now()
	for fd := range int32(100) {
		all.add(&conn{fd: fd}, now)
	}
	var d drain
	d.begin(all.all(), now, 10*time.Second)
	gone := make(map[*conn]bool)
	for s := range 11 {
		at := now.Add(time.Duration(s) * time.Second)
		for c := d.next(at); c != nil; c = d.next(at) {
			gone[c] = true
		}
		if len(gone) != 10*s {
			t.Errorf("%d of 100 are gone after %d s of 10", len(gone), s)
		}
		if d.isOver(at) {
			t.Errorf("it is over after %d s of 10", s)
		}
	}
	if !d.isOver(now.Add(11 * time.Second)) {
		t.Error("it is never over")
	}
}

func TestADescriptorThatIsUsedAgainIsAnotherConnection(t *testing.T) {
	var all table
	old := &conn{fd: 7}
	all.add(old, time.Now())
	serial := old.serial
	if all.find(7, serial) != old || all.find(6, serial) != nil || all.find(-1, serial) != nil || all.find(700, serial) != nil {
		t.Error("the table does not find what it has")
	}
	all.remove(old)
	all.add(&conn{fd: 7}, time.Now())
	if all.find(7, serial) != nil || all.count != 1 {
		t.Error("one that is gone is found")
	}
}

func TestStallsKnowTheirPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s stalls
		var in []*conn
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(in) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "who")
				s.remove(in[i])
				if in[i].stall != nil {
					t.Fatal("one that was removed believes to be stalled")
				}
				in = slices.Delete(in, i, i+1)
			} else {
				c := new(conn)
				s.add(c, nil, time.Time{})
				in = append(in, c)
			}
			for i, c := range s {
				if c.stall.index != i {
					t.Fatalf("number %d believes to be %d", i, c.stall.index)
				}
			}
			if len(s) != len(in) {
				t.Fatalf("%d are listed of %d", len(s), len(in))
			}
		}
	})
}

// TestThePollerTellsOfInputAndThenOfRoom, which a socket that was never full is not watched for.
func TestThePollerTellsOfInputAndThenOfRoom(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	next := func() (all uint32) {
		select {
		case <-p.ready:
		case <-time.After(time.Minute):
			t.Fatal("nothing happens")
		}
		if err := p.take(func(fd int32, events uint32) {
			if fd != int32(pair[0]) {
				t.Errorf("events of %d", fd)
			}
			all |= events
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if errno := p.add(int32(pair[0])); errno != 0 {
		t.Fatal(errno)
	}
	if _, err := unix.Write(pair[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != unix.EPOLLIN {
		t.Errorf("%x instead of input", got)
	}
	if errno := p.addRoom(int32(pair[0])); errno != 0 {
		t.Fatal(errno)
	}
	if got := next(); got&unix.EPOLLOUT == 0 {
		t.Errorf("%x without room", got)
	}
}
