// Command figures measures the document engine beside other libraries in one run, and prints the result as a table in Markdown
// with ratios and geometric means. With -svg it also draws it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/freshet-io/freshet/bench/diff"
)

func main() {
	rounds := flag.Int("rounds", 7, "how often each contender has its turn on each stream")
	turn := flag.Duration("turn", 30*time.Millisecond, "how long a turn is at least")
	small := flag.Bool("small", false, "also run wI2L/jsondiff with LCS and Rationalize, once; it takes minutes")
	record := flag.String("record", "", "with -small, file to record the bytes of the peer's patches in")
	only := flag.String("only", "", "only streams whose name contains this")
	svg := flag.String("svg", "", "file to draw a plot to")
	flag.Parse()

	var rows []row
	for _, s := range append(diff.Everyday(), diff.Hostile()...) {
		if strings.Contains(s.Name, *only) {
			rows = append(rows, measure(s, *rounds, *turn, *small))
		}
	}
	printTable(os.Stdout, rows)
	printMeans(os.Stdout, rows)
	if *svg != "" {
		write(*svg, plot(rows))
	}
	if *record != "" && *small {
		write(*record, peerBytes(rows))
	}
}

func write(name string, text []byte) {
	if err := os.WriteFile(name, text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// peerBytes returns the record of the peer's patches.
func peerBytes(rows []row) []byte {
	record := make(map[string]diff.PeerBytes)
	for _, r := range rows {
		record[r.stream.Name] = diff.PeerBytes{Defaults: r.peer.Bytes, Smallest: r.small.Bytes}
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		panic(err) // numbers only
	}
	return append(text, '\n')
}

// A row is the results of all contenders on one stream.
type row struct {
	stream                                      diff.Stream
	ours, plain, peer, cached, sonic, validJSON diff.Result
	small                                       *diff.Result
}

func measure(s diff.Stream, rounds int, turn time.Duration, small bool) row {
	r := diff.Measure(s, []diff.Contender{
		diff.Ours, diff.OursPlain, diff.WI2L, diff.WI2LCached, diff.SonicValid, diff.JSONValid,
	}, rounds, turn)
	out := row{s, r[0], r[1], r[2], r[3], r[4], r[5], nil}
	if small {
		out.small = &diff.Measure(s, []diff.Contender{diff.WI2LSmall}, 1, time.Nanosecond)[0]
	}
	return out
}
