// Package compose holds the tests of the compose files at the root of the repository.
package compose
