// Package jetstream is the grid of a cluster: documents, values and counters in streams of NATS JetStream, presence and news over
// plain NATS. Nodes speak to NATS only, never to each other.
package jetstream
