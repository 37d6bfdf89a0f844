// Package memory shares out what memory the process may use: what documents hold of it, and who may take a good part of it for a
// moment.
//
// An [Account] counts what is held for long, against a hard bound. A [Semaphore] admits work that needs much for a short time,
// some of it at once, fairly between owners. Neither allocates anything: callers say what they take, by estimates that err on the high side.
//
// It deliberately does not know documents, publications or why anybody needs memory. Everything is safe for concurrent use.
package memory
