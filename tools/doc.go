// Package tools pins the linters, in a module of their own so that none of them reaches a user's build.
// Run one with: go tool -modfile=tools/go.mod golangci-lint run ./...
// The one for TypeScript, JavaScript and style sheets comes from npm: npm --prefix tools ci, then
// tools/node_modules/.bin/biome check --write. Its settings are in biome.json, at the root, where editors look for them.
package tools
