// Command build makes the console's files in dist/ from web/. The result is committed, so only who changes the console
// runs it: `make console`. It needs the npm packages that web/package-lock.json names.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("../web", "../dist"); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(web, dist string) error {
	files, err := bundle(web)
	if err != nil {
		return err
	}
	return write(dist, files)
}
