package store

import (
	"strconv"
	"strings"
	"sync"
)

// upsert adds to rows that may be there already, many in one statement: a statement costs more than a row.
type upsert struct {
	table   string
	key     []string // columns that tell rows apart
	given   []string // columns that are the same whenever the key is
	counted []string // columns that are added up

	texts sync.Map // by the number of rows
}

// maxRows is how many rows one statement has. There are a few sizes below it, so that there are few statements to prepare.
const maxRows = 64

// run adds the rows. No two may have the same key.
func (u *upsert) run(tx *Tx, rows [][]any) error {
	for size := maxRows; len(rows) > 0; {
		if size > len(rows) {
			size /= 2
			continue
		}
		args := make([]any, 0, size*len(rows[0]))
		for _, row := range rows[:size] {
			args = append(args, row...)
		}
		if _, err := tx.writeAny(u.text(size), args...); err != nil {
			return err
		}
		rows = rows[size:]
	}
	return nil
}

func (u *upsert) text(rows int) string {
	if known, ok := u.texts.Load(rows); ok {
		return known.(string) //nolint:errcheck // nothing else is stored
	}
	made := u.write(rows)
	u.texts.Store(rows, made)
	return made
}

func (u *upsert) write(rows int) string {
	var text strings.Builder
	columns := append(append(append([]string(nil), u.key...), u.given...), u.counted...)
	text.WriteString("INSERT INTO " + u.table + " (" + strings.Join(columns, ", ") + ") VALUES ")
	place := 0
	for row := range rows {
		if row > 0 {
			text.WriteString(", ")
		}
		for i := range columns {
			place++
			text.WriteString([]string{"($", ", $"}[min(i, 1)] + strconv.Itoa(place))
		}
		text.WriteString(")")
	}
	text.WriteString(" ON CONFLICT (" + strings.Join(u.key, ", ") + ") DO UPDATE SET ")
	for i, name := range u.counted {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(name + " = " + u.table + "." + name + " + excluded." + name)
	}
	return text.String()
}
