// Package cluster measures a small cluster on one machine: publications per second through NATS, the time from a POST to a
// subscriber on another node, and how soon a node serves again after it was killed. It has tests only, which are left out
// without -figures.
package cluster
