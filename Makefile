# Names for combinations of plain go commands. `make` lists them.

.DEFAULT_GOAL := help

# How releases are compiled. Whatever needs no race detector is compiled like that, so that one cache serves everything.
PLAIN := CGO_ENABLED=0 GOFLAGS=-trimpath

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./freshet
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o freshet ./cmd/freshet

.PHONY: run
run: ## Start the whole service on embedded defaults
	go run ./cmd/freshet serve

.PHONY: needs
needs: ## Install what the tests need, or say what is missing
	@scripts/needs

.PHONY: test
test: needs ## Run all tests, with the race detector
	go test -race -vet=off -shuffle=on -timeout 30m ./... # make check vets everything
	$(PLAIN) go -C bench test -vet=off ./...
	$(PLAIN) go -C console/build test -vet=off -count=1 ./... # its inputs lie outside its module, where Go does not notice changes
	$(PLAIN) go -C packaging test -vet=off -count=1 ./... # the same: it builds the program
	@echo 'test: ok. Not among these: long runs of faults (make chaos), and the figures of a cluster (go -C bench test ./cluster -v -figures).'
	@[ "$$(id -u)" = 0 ] || echo 'test: the image was NOT run, which only root can do (sudo go -C packaging test -count=1 ./image)'

.PHONY: check
check: ## Formatting, lint, known vulnerabilities, stale files
	@scripts/check

.PHONY: bench
bench: ## Measure the document engine and the store
	go -C bench run ./diff/cmd/figures
	go test -run '^$$' -bench . ./internal/store

CHAOS := 20
SEED := 0

.PHONY: chaos
chaos: needs ## Break a cluster CHAOS times as SEED says, and check that nothing is lost
	go test ./e2e -run TestChaos -v -timeout 2h -chaos $(CHAOS) -seed $(SEED)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: image
image: ## Make the container image in ./dist, without a container engine
	go -C packaging run ./image -version '$(VERSION)' -commit '$(COMMIT)' -date '$(SOURCE_DATE_EPOCH)' \
		-layout ../dist/image -archives ../dist

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target for half a minute
	@scripts/fuzz

.PHONY: console
console: ## Build the web console's files in console/dist from console/web
	npm --prefix console/web ci --silent
	npm --prefix console/web run --silent types
	go -C console/build run .

.PHONY: golden
golden: ## Rewrite golden files and generated pages from what the code says now
	go test ./internal/cli ./internal/settings ./internal/server ./internal/subscribe -update
	cd sdk/ts && npm ci --ignore-scripts && npm run generate
