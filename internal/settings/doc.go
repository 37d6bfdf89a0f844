// Package settings knows every setting of the server: its name in the file, in the environment and on the command
// line, its default, what it accepts, and where its value came from.
//
// One table (table.go) drives all of that, and the reference in the documentation too, so a new setting is one
// entry there and one field in Settings. Layers are defaults, then the YAML file, then the environment, then
// flags; a later layer wins. Everything that is wrong in any layer is reported at once.
//
// It deliberately does not read the process environment or the command line (the caller passes them in), and does
// not watch anything: settings are fixed when the process starts. The only I/O is reading the files it is told of.
// Settings do not change after Load, so they may be read concurrently.
package settings
