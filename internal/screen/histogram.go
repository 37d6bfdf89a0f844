package screen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/freshet-io/freshet/internal/histogram"
)

// steps are bounds that people like to read.
func steps() []time.Duration {
	var all []time.Duration
	for d := 50 * time.Microsecond; d <= time.Minute; d *= 10 {
		all = append(all, d, 2*d, 4*d)
	}
	return all
}

// Draw pictures a distribution, a row for each class of durations that has any.
func Draw(w io.Writer, h *histogram.Fine, width int) error {
	bounds := steps()
	counts := make([]uint64, len(bounds)+1)
	for bound, n := range h.All() {
		at := 0
		for at < len(bounds) && bound > bounds[at] {
			at++
		}
		counts[at] += n
	}
	first, last := -1, -1
	most := uint64(1)
	for i, n := range counts {
		if n > 0 {
			if first < 0 {
				first = i
			}
			last = i
			most = max(most, n)
		}
	}
	if first < 0 {
		return nil
	}
	const labels = 32
	room := float64(max(width-labels, 10))
	for i := first; i <= last; i++ {
		label := "more"
		if i < len(bounds) {
			label = "≤ " + bounds[i].String()
		}
		bar := bar(float64(counts[i]) / float64(most) * room)
		share := 100 * float64(counts[i]) / float64(h.Count())
		if _, err := fmt.Fprintf(w, "  %9s %10d %5.1f %% %s\n", label, counts[i], share, bar); err != nil {
			return err
		}
	}
	return nil
}

// bar draws a length in eighths of a character. What is not nothing is never drawn as nothing.
func bar(length float64) string {
	eighths := int(length*8 + 0.5)
	if length > 0 && eighths == 0 {
		eighths = 1
	}
	out := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		out += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return out
}
