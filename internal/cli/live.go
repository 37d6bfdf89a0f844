package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/freshet-io/freshet/client"
	"github.com/freshet-io/freshet/internal/screen"
)

const (
	frameEvery = 70 * time.Millisecond // at most; nobody reads faster
	idleEvery  = time.Second           // the first row counts what came
	// restFactor is how many times longer than painting it rests: huge documents are painted less often.
	restFactor = 20
	// settleFor is how long a refusal may take to come before the terminal is taken over.
	settleFor = 500 * time.Millisecond
)

// live shows the document in the terminal until ctx ends or the subscription does.
func (w *tailing) live(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	v := &liveView{tailing: w, ended: make(chan error, 1), dirty: make(chan struct{}, 1), measured: time.Now()}
	v.state.Store(&client.State{})
	w.opts.OnState = func(s client.State) { v.state.Store(&s); v.touch() }
	v.stream = w.client.Stream(w.target, w.opts)
	wg.Go(func() { v.ended <- v.receive(ctx) })

	began := time.Now()
	if over, err := v.wait(ctx, settleFor, v.dirty); over {
		return err
	}
	err := v.paint(ctx)
	w.p.done("%d events in %v", v.events.Load(), time.Since(began).Round(time.Second))
	return err
}

// liveView joins the loop that receives with the one that paints. The painter shows the newest document there is, so it
// does not matter how many came meanwhile.
type liveView struct {
	*tailing
	stream *client.Stream
	ended  chan error    // what ended the subscription
	dirty  chan struct{} // holds one: there is something new to show
	events atomic.Int64
	state  atomic.Pointer[client.State]
	fault  atomic.Pointer[client.StreamError] // the newest, until a document comes again

	// Owned by paint.
	view     screen.View
	counted  int64 // events, when the rate was measured
	measured time.Time
	rate     float64
}

func (v *liveView) touch() {
	select {
	case v.dirty <- struct{}{}:
	default:
	}
}

func (v *liveView) receive(ctx context.Context) error {
	for e, err := range v.stream.Events(ctx) {
		if err != nil {
			return err
		}
		v.fault.Store(e.Err)
		if e.Kind != client.Failure && v.events.Add(1) == int64(v.count) {
			return nil
		}
		v.touch()
	}
	return nil
}

// wait returns after d, or at once when there is news; over says that there will be no more.
func (v *liveView) wait(ctx context.Context, d time.Duration, news <-chan struct{}) (over bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-v.ended:
		return true, err
	case <-ctx.Done():
		return true, ctx.Err()
	case <-news:
	case <-timer.C:
	}
	return false, nil
}

// paint repaints when something came, while a mark fades, and once a second for the first row.
func (v *liveView) paint(ctx context.Context) error {
	painter, err := screen.Open(v.p.stdout)
	if err != nil {
		return err
	}
	defer func() { _ = painter.Close() }()
	for {
		began := time.Now()
		if err := v.frame(painter, began); err != nil {
			return err
		}
		if over, err := v.wait(ctx, max(frameEvery, restFactor*time.Since(began)), nil); over {
			return err
		}
		idle := idleEvery
		if v.view.Fading(time.Now()) {
			idle = 4 * frameEvery
		}
		if over, err := v.wait(ctx, idle, v.dirty); over {
			return err
		}
	}
}

func (v *liveView) frame(painter *screen.Painter, now time.Time) error {
	columns, height := terminalSize(v.p.stdout)
	marks := screen.Coloured
	if v.p.variable("NO_COLOR") != "" {
		marks = screen.Bare
	}
	const gutter = 2
	v.view.Update(v.stream.Document(), columns-gutter, now)
	rows, first, last, total := v.view.Rows(max(height-2, 1), marks, now)
	head := v.heading(now)
	if last-first+1 < total {
		head += fmt.Sprintf("  lines %d-%d of %d", first, last, total)
	}
	return painter.Paint(append([]string{head, ""}, rows...), columns, height)
}

// heading says what is shown, how it changes, and what is wrong.
func (v *liveView) heading(now time.Time) string {
	if since := now.Sub(v.measured); since >= idleEvery {
		n := v.events.Load()
		v.rate = float64(n-v.counted) / since.Seconds()
		v.counted, v.measured = n, now
	}
	parts := []string{plain(v.title)}
	if id := v.stream.LastEventID(); id != "" {
		parts = append(parts, plain(id), bytesText(len(v.stream.Document())), fmt.Sprintf("%.0f/s", v.rate))
	}
	state, fault := v.state.Load(), v.fault.Load()
	switch {
	case state.Phase == client.Waiting:
		parts = append(parts, reason(state.Err)+"; connecting again")
	case state.Phase == client.Connecting:
		parts = append(parts, "connecting")
	case fault != nil:
		parts = append(parts, plain(fault.Error()))
	case v.stream.LastEventID() == "":
		parts = append(parts, "waiting for the first document")
	}
	return strings.Join(parts, "  ")
}

func bytesText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}

// terminalSize asks at every frame, which costs little and follows a window that is resized.
func terminalSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}
