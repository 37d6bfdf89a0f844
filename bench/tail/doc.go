// Command tail measures what watching costs: `freshet tail` in a terminal follows a document of 500 rows that changes 50
// times a second, and what it used of one core is printed. The figure to stay under is 10 %.
//
//	go run ./tail
//
// It runs on Linux: it needs a pseudo-terminal, and /proc.
package main
