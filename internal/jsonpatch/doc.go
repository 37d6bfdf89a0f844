// Package jsonpatch reads JSON documents, tells how two of them differ, and applies such differences.
//
// A [Document] is the compact text of a JSON value and a flat tape beside it: one small record per value, in
// the order of the text, without pointers. Positions on the tape are relative, so the record of a value
// is the same wherever its text stands; [ParseNext] and [Next] use that to copy the tape of everything that
// the previous version already holds instead of reading it again. Every record carries a hash of its value
// that is equal for equal JSON. Different hashes prove a difference; equal ones are confirmed by bytes or by
// exact values before anybody relies on them.
//
// Nothing is rounded and nothing is respelled: numbers, escapes and key order stay as written, and only white
// space outside strings goes. Equality is JSON equality: numbers by exact decimal value of any size, strings
// after unescaping, objects without regard to order.
//
// # Strictness
//
// Duplicate keys, invalid UTF-8 (including surrogates written as raw bytes), control characters in strings, data
// after the value, numbers outside the grammar, and nesting beyond the limit are refused. An escaped
// surrogate without its partner, such as "\ud800", is grammatical in RFC 8259 and is kept as written; it
// equals only itself, never U+FFFD.
//
// # What it does not do
//
// It does not convert to or from Go values, stream, or keep comments. [Diff] writes add, replace and
// remove only, never with the root path, and does not search for moves.
//
// # Concurrency
//
// A Document never changes after it is made and may be shared by any number of goroutines. All functions are safe for
// concurrent use; the scratch memory they reuse is pooled.
package jsonpatch
