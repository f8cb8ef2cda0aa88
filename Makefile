# The targets are the habits of this project. `make` alone lists them.

GO ?= go

# The linter is built from its module at this version, outside go.mod: its hundreds of
# dependencies are no part of the library's. Go keeps what it has built.
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

# A test that hangs ends with the stacks of its goroutines well before CI would give up on it.
TEST := $(GO) test -race -timeout 5m

# The root module, those with what needs real servers or much else, the one for users of gocron, and examples.
MODULES := . test test/gates test/bench test/browser test/deploy test/docs scheduler/gocron examples/inventory examples/telemetry

# Systems on which quorate is used beside the one this runs on, and the modules that are for all of them. The
# others test files and pages, with dependencies that take minutes to build for each system.
OTHER_SYSTEMS := darwin windows
PORTABLE := $(filter-out test/browser test/deploy test/docs,$(MODULES))

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: redis spin databases chromium ## every test with -race, those on real redis-servers, databases and in a browser included
	$(TEST) ./...
	cd test && $(TEST) -count=1 ./... # it builds programs from outside of its module, which the cache of tests does not see
	cd test/gates && $(TEST) ./...
	cd test/bench && $(TEST) ./...
	cd test/browser && $(GO) test -timeout 5m ./... # the dashboard has its tests with -race; these are about pages
	cd test/deploy && $(GO) test -timeout 5m ./... # without -race: it is about files, and its simulations are long
	cd test/docs && $(TEST) ./...
	cd scheduler/gocron && $(TEST) ./...
	cd examples/inventory && $(TEST) ./...
	cd examples/telemetry && $(TEST) ./...
	$(MAKE) sim

# How long the simulation runs, and how much simulated time each of its seeds gets.
SIM := 40s
SPAN := 10m
CORES := $(shell getconf _NPROCESSORS_ONLN)

.PHONY: sim
sim: ## the simulation under fresh seeds, for SIM=40s of real time
	$(GO) test -count=1 -timeout 0 -v -run TestPromisesHoldUnderFaults ./internal/sim -for $(SIM) -span $(SPAN) -workers $(CORES)

# Not part of CI, where a test sees that every mutant still finds its text.
.PHONY: mutants
mutants: ## switch off each safety rule, see the simulation fail, write docs/mutants.md
	$(GO) run ./internal/sim/mutants -workers $(CORES) -page docs/mutants.md

.PHONY: redis
redis: ## install redis-server where it is missing
	./scripts/install-redis

.PHONY: databases
databases: ## install PostgreSQL and MariaDB where they are missing
	./scripts/install-databases

.PHONY: chromium
chromium: ## install Chromium where it is missing
	./scripts/install-chromium

.PHONY: docs
docs: ## write the recipes into docs/recipes.md and docs/fencing.md
	cd test/docs && $(GO) run ./sync

.PHONY: spin
spin: ## install spin where it is missing
	./scripts/install-spin

.PHONY: model
model: spin ## search the model of the protocol and its mutants to the end, and write docs/model.md
	cd test && $(GO) run ./model -out ../docs/model.md

.PHONY: lint
lint: lint-tree lint-tidy lint-go lint-systems ## everything that is checked without running it

.PHONY: lint-tree
lint-tree: ## notes left in files, links that lead nowhere
	$(GO) run ./scripts/checktree

.PHONY: lint-tidy
lint-tidy: ## go.mod and go.sum are what the code needs
	@for module in $(MODULES); do \
		echo "(cd $$module && $(GO) mod tidy -diff)"; \
		(cd $$module && $(GO) mod tidy -diff) || \
			{ echo "run: (cd $$module && $(GO) mod tidy)" >&2; exit 1; }; \
	done

.PHONY: lint-go
lint-go: ## go vet and golangci-lint
	@for module in $(MODULES); do \
		echo "(cd $$module && $(GO) vet ./... && golangci-lint run)"; \
		(cd $$module && $(GO) vet ./... && $(GOLANGCI_LINT) run --allow-serial-runners ./...) || exit 1; \
	done

.PHONY: lint-systems
lint-systems: ## vet, tests included, for the other systems
	@for system in $(OTHER_SYSTEMS); do for module in $(PORTABLE); do \
		echo "(cd $$module && GOOS=$$system $(GO) vet ./...)"; \
		(cd $$module && GOOS=$$system $(GO) vet ./...) || exit 1; \
	done; done

.PHONY: fmt
fmt: ## format all Go code
	@for module in $(MODULES); do (cd $$module && $(GOLANGCI_LINT) fmt ./...) || exit 1; done

.PHONY: cover
cover: ## test coverage of the root module, as a page in .cache/cover.html
	@mkdir -p .cache
	$(GO) test -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -html=.cache/cover.out -o .cache/cover.html
	@$(GO) tool cover -func=.cache/cover.out | tail -n 1

# How long each fuzz target runs, and where the targets are.
FUZZTIME ?= 1m
FUZZ_PACKAGES := redlock leader scheduler fencing internal/crontab

# Go fuzzes one target at a time, so each package is built once and run for each of its targets.
# It also reports its own timer as a failure now and then, without a failing input
# (go.dev/issue/75804, mended in Go 1.27): only that is overlooked. Inputs are hardly minimized,
# which would take most of the time.
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (1m); what it finds goes to testdata/fuzz and is to be kept
	@mkdir -p .cache/fuzz/internal
	@root=$$PWD; for package in $(FUZZ_PACKAGES); do \
		$(GO) test -c -fuzz . -o .cache/fuzz/$$package.test ./$$package || exit 1; \
		for target in $$($(GO) test -list '^Fuzz' ./$$package | grep '^Fuzz'); do \
			echo "fuzz $$package $$target $(FUZZTIME)"; \
			(cd $$package && $$root/.cache/fuzz/$$package.test -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 10x -test.parallel 2 -test.fuzzcachedir $$root/.cache/fuzz/$$package) >.cache/fuzz/log 2>&1 \
				|| { grep -q 'context deadline exceeded' .cache/fuzz/log && ! grep -qE 'Failing input|panic:' .cache/fuzz/log; } \
				|| { cat .cache/fuzz/log; exit 1; }; \
			grep elapsed .cache/fuzz/log | tail -n 1; \
		done; \
	done

.PHONY: fuzz-short
fuzz-short: ## every fuzz target for two seconds
	@$(MAKE) --no-print-directory fuzz FUZZTIME=2s

# How long the chaos on real servers goes on, which profile of faults, and which schedule of them
# (0: a new one, which is printed).
SOAK ?= 10m
PROFILE ?= within
SEED ?= 0

.PHONY: soak
soak: redis ## chaos on real servers and processes for SOAK (10m), with PROFILE within or beyond the assumptions
	@mkdir -p .cache
	cd test && $(GO) build -o ../.cache/soak ./soak
	.cache/soak -for $(SOAK) -profile $(PROFILE) -seed $(SEED) -json .cache/soak.json

.PHONY: soak-peers
soak-peers: redis ## the same for the part with the locks, with other libraries as well, 2m each, as a table
	@mkdir -p .cache
	cd test && $(GO) build -o ../.cache/soak ./soak
	.cache/soak -peers -for 2m -seed 3

# How long each run of the storm on the guards goes on, two for each store.
FOR ?= 60s

.PHONY: guards-storm
guards-storm: redis databases ## guarded sales in processes that are stopped and killed, FOR (60s) on each store, with and without the gate, as a table
	@mkdir -p .cache
	cd test/gates && $(GO) build -o ../../.cache/storm ./storm
	.cache/storm -for $(FOR)

# How many rounds of each fault, and the TTL of a term.
ROUNDS ?= 30
TTL ?= 2s

.PHONY: leader-chaos
leader-chaos: redis ## take-over times of candidate processes after ROUNDS (30) of each fault, with terms of TTL (2s), as a table
	@mkdir -p .cache
	cd test && $(GO) build -o ../.cache/fleet ./fleet
	.cache/fleet leaders -rounds $(ROUNDS) -ttl $(TTL)

# How many ticks, one a second.
TICKS ?= 200

.PHONY: cron-fleet
cron-fleet: redis ## replica processes that are killed and restarted run TICKS (200), ours and gocron's, as a table
	@mkdir -p .cache
	cd test && $(GO) build -o ../.cache/fleet ./fleet
	.cache/fleet cron -ticks $(TICKS) -ttl $(TTL)

# Which rows, by their numbers with commas (none: all); how long each measurement takes; and of how many
# rounds the median is taken.
ROWS ?=
BENCH_SPAN ?= 1500ms
BENCH_ROUNDS ?= 3

# The figures are those of the whole machine: leave it alone meanwhile.
.PHONY: bench
bench: redis databases ## measure beside the peers on real servers, ROWS (all), some ten minutes, and write docs/performance.md
	@mkdir -p .cache
	cd test/bench && $(GO) build -o ../../.cache/bench .
	.cache/bench -rows '$(ROWS)' -for $(BENCH_SPAN) -rounds $(BENCH_ROUNDS)

.PHONY: bench-go
bench-go: redis ## the hot paths on real redis-servers, as benchstat wants them
	@cd test/bench && $(GO) test -run '^$$' -bench . -count 6 -timeout 30m .

.PHONY: example-fleet
example-fleet: ## elect, schedule and sell on an embedded fleet, with faults, and count
	$(GO) run ./examples/fleet

.PHONY: example-hazard
example-hazard: ## a holder is paused past its TTL, without a gate and with one
	$(GO) run ./examples/hazard

.PHONY: example-inventory
example-inventory: ## a flash sale on PostgreSQL, or SQLite where there is none, in four ways, as a table
	cd examples/inventory && $(GO) run .
