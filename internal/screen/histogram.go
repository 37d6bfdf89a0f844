package screen

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Histogram counts durations in classes that are at most an eighth wide, so that percentiles are exact to about 6 %.
type Histogram struct {
	classes  [64 * 8]int64
	count    int64
	sum      time.Duration
	min, max time.Duration
}

// classOf numbers durations by microseconds: three bits behind the first one.
func classOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	n := bits.Len64(us) - 1
	if n < 3 {
		return int(us)
	}
	return (n-2)*8 + int(us>>(n-3))&7
}

// upper is the upper bound of a class.
func upper(class int) time.Duration {
	if class < 8 {
		return time.Duration(class+1) * time.Microsecond
	}
	n := class/8 + 2
	return time.Duration((8+uint64(class%8)+1)<<(n-3)) * time.Microsecond
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.classes[classOf(d)]++
	if h.count == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.count++
	h.sum += d
}

// Merge counts everything that other has counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.count == 0 {
		return
	}
	if h.count == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	h.count += other.count
	h.sum += other.sum
	for i, n := range other.classes {
		h.classes[i] += n
	}
}

// Count is how many durations there are.
func (h *Histogram) Count() int64 { return h.count }

// Max is the longest.
func (h *Histogram) Max() time.Duration { return h.max }

// Mean is the average.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

// Percentile is a bound that p percent of the durations keep.
func (h *Histogram) Percentile(p float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := int64(math.Ceil(p / 100 * float64(h.count)))
	var seen int64
	for class, n := range h.classes {
		if seen += n; seen >= rank {
			return min(upper(class), h.max)
		}
	}
	return h.max
}

// steps are bounds that people like to read.
func steps() []time.Duration {
	var all []time.Duration
	for d := 50 * time.Microsecond; d <= time.Minute; d *= 10 {
		all = append(all, d, 2*d, 4*d)
	}
	return all
}

// Draw pictures the distribution, a row for each class of durations that has any.
func (h *Histogram) Draw(w io.Writer, width int) error {
	bounds := steps()
	counts := make([]int64, len(bounds)+1)
	for class, n := range h.classes {
		at := 0
		for at < len(bounds) && upper(class) > bounds[at] {
			at++
		}
		counts[at] += n
	}
	first, last := -1, -1
	most := int64(1)
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
		share := 100 * float64(counts[i]) / float64(h.count)
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
