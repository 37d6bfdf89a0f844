// Command topics measures what one publication costs over how many topics: it starts the program with so many topics, publishes at a
// fixed rate to all of them in turn, and divides the processor time of the process by the publications.
package main
