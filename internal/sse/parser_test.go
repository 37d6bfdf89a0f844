package sse_test

import "strings"

// parsed is one dispatched event, read the way the HTML standard describes it. This parser shares no code with the
// package under test.
type parsed struct {
	id, name, data string
	retry          string
}

type stream struct {
	events   []parsed
	comments []string
}

func parseStream(text string) stream {
	var s stream
	var e parsed
	var data []string
	lastID := ""
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] { // what follows the last line break is incomplete
		if line == "" {
			if data != nil {
				e.id, e.data = lastID, strings.Join(data, "\n")
				s.events = append(s.events, e)
			}
			e, data = parsed{}, nil
			continue
		}
		if line[0] == ':' {
			s.comments = append(s.comments, line[1:])
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.name = value
		case "data":
			data = append(data, value)
		case "id":
			if !strings.Contains(value, "\x00") {
				lastID = value
			}
		case "retry":
			e.retry = value
		}
	}
	return s
}
