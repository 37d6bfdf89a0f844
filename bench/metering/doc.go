// Command metering measures what counting usage and keeping metrics add to a delivery. One process has two servers, one that counts
// and measures everything and one that does not, each with subscribers of its own in another process; they take turns, and what
// each turn costs in processor time is divided by its deliveries.
package main
