package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"time"
)

const (
	plotLeft, plotWidth = 230, 560
	rowHeight           = 26
	decades             = 6 // from 0.1 µs to 100 ms
)

// plot draws the times of a run, one line per stream, on a logarithmic scale.
func plot(rows []row) []byte {
	var b bytes.Buffer
	height := 70 + rowHeight*len(rows)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotLeft+plotWidth+30, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for d := 0; d <= decades; d++ {
		x := plotLeft + plotWidth*d/decades
		fmt.Fprintf(&b, `<line x1="%d" y1="40" x2="%d" y2="%d" stroke="#ddd"/><text x="%d" y="34" text-anchor="middle" fill="#555">%s</text>`+"\n",
			x, x, height-20, x, time.Duration(100*math.Pow10(d)))
	}
	for i, r := range rows {
		y := 40 + rowHeight/2 + rowHeight*i
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-10, y+4, html.EscapeString(r.stream.Name))
		dot(&b, r.validJSON.Step, y, "#bbb")
		dot(&b, r.sonic.Step, y, "#f0a030")
		dot(&b, r.peer.Step, y, "#d04040")
		dot(&b, r.ours.Step, y, "#2060d0")
	}
	legend(&b, height-6)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func dot(b *bytes.Buffer, d time.Duration, y int, color string) {
	x := plotLeft + float64(plotWidth)*math.Log10(max(float64(d)/100, 1))/decades
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%d" r="5" fill="%s"/>`+"\n", x, y, color)
}

func legend(b *bytes.Buffer, y int) {
	x := plotLeft
	for _, e := range [][2]string{{"#2060d0", "freshet"}, {"#f0a030", "sonic Valid"}, {"#bbb", "encoding/json Valid"}, {"#d04040", "wI2L/jsondiff"}} {
		fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="5" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y-4, e[0], x+9, y, e[1])
		x += 140
	}
}
