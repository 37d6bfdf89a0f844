// Package examples holds the example pages, so that freshet demo can serve them. The programs beside it are examples too.
// It has no code of its own.
package examples

import "embed"

// Pages are the pages and what they share. They load nothing from anywhere else.
//
//go:embed *.html *.js *.css *.svg
var Pages embed.FS
