package screen

import (
	"io"
	"strconv"
	"strings"
)

// Painter shows rows on a terminal of its own (the alternate screen) and repaints only those that look different.
type Painter struct {
	out   io.Writer
	shown []string
	size  [2]int // columns and rows at the last painting
}

// Open takes the terminal over. Close gives it back.
func Open(out io.Writer) (*Painter, error) {
	// Another screen, no cursor, no wrapping: what is too long is cut by the terminal, whatever it thinks of widths.
	_, err := io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")
	return &Painter{out: out}, err
}

// Close gives the terminal back as it was.
func (p *Painter) Close() error {
	_, err := io.WriteString(p.out, "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l")
	return err
}

// Paint makes the terminal show the rows, in one write.
func (p *Painter) Paint(rows []string, columns, height int) error {
	var b strings.Builder
	if size := [2]int{columns, height}; size != p.size {
		p.size, p.shown = size, nil
		b.WriteString("\x1b[2J")
	}
	rows = rows[:min(len(rows), height)]
	for i := range max(len(rows), len(p.shown)) {
		row, was := "", ""
		if i < len(rows) {
			row = rows[i]
		}
		if i < len(p.shown) {
			was = p.shown[i]
		}
		if row != was {
			b.WriteString("\x1b[" + strconv.Itoa(i+1) + ";1H" + row + "\x1b[0m\x1b[K")
		}
	}
	p.shown = append(p.shown[:0:0], rows...)
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}
