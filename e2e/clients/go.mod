module github.com/freshet-io/freshet/e2e/clients

go 1.26.0

require (
	github.com/evanphx/json-patch/v5 v5.9.11
	github.com/r3labs/sse/v2 v2.10.0
	github.com/tmaxmax/go-sse v0.11.0
	gopkg.in/cenkalti/backoff.v1 v1.1.0
)

require golang.org/x/net v0.0.0-20191116160921-f9c825593386 // indirect
