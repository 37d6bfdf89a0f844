package diff

import (
	"math"
	"slices"
	"syscall"
	"time"
)

// A Result is what one contender needed on one stream.
type Result struct {
	Step  time.Duration // median over the rounds of the processor time per step
	Bytes int           // of all patches of the stream, or whole documents where they were sent; 0 if it only validates
}

// PeerBytes is the length of the peer's patches of one stream.
type PeerBytes struct {
	Defaults int `json:"defaults"`
	Smallest int `json:"smallest"` // with LCS and Rationalize
}

// Measure runs contenders over a stream in turns, so that what else the machine does meets all of them alike. Each turn
// goes over the whole stream as often as it takes to fill atLeast, after half as long unmeasured. Only the contender whose turn
// it is has anything in memory; the garbage that it makes in its turn counts.
func Measure(s Stream, contenders []Contender, rounds int, atLeast time.Duration) []Result {
	results := make([]Result, len(contenders))
	times := make([][]time.Duration, len(contenders))
	for range rounds {
		for i, c := range contenders {
			step := c.Start(s)
			results[i].Bytes = 0
			for v := 1; v < len(s.Versions); v++ {
				results[i].Bytes += len(step(v))
			}
			turn(s, step, atLeast/2) // until memory is in its steady state
			times[i] = append(times[i], turn(s, step, atLeast))
		}
	}
	for i := range results {
		slices.Sort(times[i])
		results[i].Step = times[i][len(times[i])/2]
	}
	return results
}

// turn returns the processor time per step.
func turn(s Stream, step func(int) []byte, atLeast time.Duration) time.Duration {
	start, n := cpuTime(), 0
	for {
		for v := 1; v < len(s.Versions); v++ {
			step(v)
		}
		n += len(s.Versions) - 1
		if spent := cpuTime() - start; spent >= atLeast {
			return spent / time.Duration(n)
		}
	}
}

// cpuTime returns the processor time that this process has used, all threads together: unlike the clock on the wall it does
// not count what other processes take, and it does count garbage collection on other processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// GeoMean returns the geometric mean.
func GeoMean(ratios []float64) float64 {
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	return math.Exp(sum / float64(len(ratios)))
}
