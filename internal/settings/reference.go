package settings

import (
	"fmt"
	"io"
	"strings"
)

const referenceHead = `# Settings

<!-- Written by settings.Reference from the table in internal/settings. Change that, not this. -->

Every setting has one name in three spellings: ` + "`subscriber.listen`" + ` in the YAML file, ` +
	"`FRESHET_SUBSCRIBER_LISTEN`" + ` in the
environment, ` + "`--subscriber-listen`" + ` on the command line. Layers, a later one wins:

1. the defaults below
2. the YAML file named by ` + "`--config FILE` or `FRESHET_CONFIG`" + `
3. the environment. A variable that is empty counts as not set. ` + "`SDIO_admin_email`" + `, in exactly this spelling, sets the
   administrator's e-mail and wins over ` + "`FRESHET_ADMIN_EMAIL`" + `
4. flags

Settings marked with a lock can also be read from a file: ` + "`FRESHET_ADMIN_PASSWORD_FILE=/run/secrets/admin`" + `. Durations are
written ` + "`500ms`, `30s`, `24h`" + `, sizes ` + "`512KiB`, `4MiB`" + `, lists with commas or as YAML sequences. Names that do not exist and
values that are not valid keep the server from starting; ` + "`freshet config check`" + ` lists all of them, and
` + "`freshet config print`" + ` shows what applies and where it came from.
`

// Reference writes the documentation of every setting as Markdown.
func Reference(w io.Writer) error {
	var out strings.Builder
	out.WriteString(referenceHead)
	section := "none yet"
	for i := range table {
		e := &table[i]
		group, _, nested := strings.Cut(e.Key, ".")
		title := group
		if !nested {
			title = "General"
		}
		if title != section {
			section = title
			fmt.Fprintf(&out, "\n## %s\n\n| Key, flag, variable | Default | Value | Meaning |\n|---|---|---|---|\n", title)
		}
		fmt.Fprintf(&out, "| `%s`<br>`--%s`<br>`%s` | %s | %s | %s%s |\n", e.Key, e.Flag(), e.Variable(),
			cell(e.Default), e.valid, lock(e), e.Help)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func cell(text string) string {
	if text == "" {
		return "*empty*"
	}
	return "`" + text + "`"
}

func lock(e *Entry) string {
	if e.Privacy == Open {
		return ""
	}
	return "🔒 "
}
