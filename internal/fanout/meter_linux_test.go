package fanout

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freshet-io/freshet/internal/wire"
)

// BenchmarkMetering is what counting and measuring add to one write to a subscriber, and BenchmarkWrite beside it is what the
// write alone costs at the least: go test -bench 'Metering|Write' ./internal/fanout
func BenchmarkMetering(b *testing.B) {
	for _, members := range []int{1, 1000} {
		name := map[int]string{1: "alone", 1000: "large group"}[members]
		b.Run(name, func(b *testing.B) {
			fan, err := New(Options{Loops: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer fan.Close()
			total := int64(0)
			l := new(loop)
			m := &membersForBench(l, func(s Sent) { total += s.Events }).members[0]
			b.ResetTimer()
			for i := 0; i < b.N; i += members { // one pass over the group
				m.bringing = time.Now()
				for range min(members, b.N-i) {
					l.meter.sent.events++
					l.meter.account(m, 1, 300, 600)
					if l.meter.sent.events%sliceLen == 0 {
						l.meter.measure(m, sliceLen)
					}
				}
				l.meter.measure(m, 1)
				l.meter.report(&fan.counters, 0)
			}
			b.StopTimer()
			if total != int64(b.N) {
				b.Errorf("%d were counted of %d", total, b.N)
			}
		})
	}
}

func membersForBench(l *loop, sent func(Sent)) *Group {
	g := &Group{Sent: sent}
	g.members = []members{{group: g, loop: l}}
	return g
}

func BenchmarkWrite(b *testing.B) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	frame, sink := make([]byte, 300), make([]byte, 1<<20)
	for b.Loop() {
		if n, errno := wire.WriteNow(pair[0], frame); errno != 0 || n < len(frame) {
			b.StopTimer()
			for {
				if n, err := unix.Read(pair[1], sink); n <= 0 || err != nil {
					break
				}
			}
			b.StartTimer()
		}
	}
}

func TestSentIsToldOnceARoundAndAddsUp(t *testing.T) {
	fan, err := New(Options{Loops: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer fan.Close()
	var told []Sent
	l := new(loop)
	g := membersForBench(l, func(s Sent) { told = append(told, s) })
	for range 3 {
		l.meter.account(&g.members[0], 1, 10, 100)
	}
	l.meter.report(&fan.counters, 0)
	l.meter.report(&fan.counters, 0)
	l.meter.account(&g.members[0], 0, 5, 5)
	l.meter.report(&fan.counters, 0)
	if len(told) != 2 || told[0] != (Sent{Events: 3, Bytes: 30, Full: 300}) || told[1] != (Sent{Bytes: 5, Full: 5}) {
		t.Errorf("%+v", told)
	}
}
