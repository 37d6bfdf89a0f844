// Code generated from the table in internal/subscribe/code.go by make golden. DO NOT EDIT.

package client

// outcomes says what a client does about each code of error events.
var outcomes = map[int]outcome{
	40000: final,   // Bad request
	40001: final,   // Invalid credentials format
	40100: final,   // Unauthorized
	40110: final,   // Credentials error
	40111: final,   // Credentials revoked
	40112: renew,   // Credentials expired
	40120: final,   // Account disabled
	40121: passing, // Account restricted
	40122: passing, // Account blocked
	40400: final,   // Resource not found
	40401: final,   // Topic not found
	40500: final,   // Method not allowed
	50000: passing, // Internal error
	50001: passing, // Timeout error
	60000: final,   // Topic in error
	60001: passing, // Data source in error
	60100: passing, // Data source connection error
	60101: passing, // Data source credentials error
	60102: passing, // Data source credentials revoked
	60103: passing, // Data source credentials expired
	60400: passing, // Data source host unknown
	61500: passing, // Unsupported data source format
}
