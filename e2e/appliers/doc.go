// Package appliers holds our patches to what others make of them: public JSON Patch appliers from npm must arrive at the
// document that was published, and our own applier must pass the public JSON Patch test suite.
//
// It contains tests only. They need node and npm, and install the locked packages themselves when they are missing; without
// node they fail, they are never skipped.
package appliers
