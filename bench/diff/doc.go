// Package diff measures the document engine beside the Go libraries that do parts of the same: wI2L/jsondiff, which compares, and
// bytedance/sonic and encoding/json, which only validate.
//
// Everything runs over streams of successive versions of a document, generated with a fixed seed, so that no library sees the
// same pair twice in a row. The previous version is at hand in whatever form a library likes best; one step is what a
// publication costs: take the new text, validate it, and produce the patch.
//
// It is a package of tests and of the command in cmd/figures; nothing of the product imports it.
package diff
