# Everything that is done to this repository, by name. "make" alone lists it.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/ekslogs/ekslogs/internal/version.version=$(VERSION)
# The version comes from git describe above; stamping it again fails in a checkout
# that belongs to another user.
export GOFLAGS := -buildvcs=false $(filter-out -buildvcs%,$(GOFLAGS))

# NVML's header marks some of what go-nvml binds as deprecated.
export CGO_CFLAGS ?= -g -O2 -Wno-deprecated-declarations

TOOL    := go tool -modfile=tools/go.mod
CLUSTER := go run ./test/cluster
E2E     := go test -tags e2e -count=1 -timeout 25m ./test/e2e/...

##@ Build

.PHONY: build
build: ## Build all programs into bin/ (works with CGO_ENABLED=0, then without NVML)
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: generate
generate: ## Generate the API's deepcopy functions and the CRD
	$(TOOL) controller-gen object paths=./api/... crd paths=./api/... output:crd:dir=api/crds
	cp api/crds/*.yaml charts/node-agent/crds/

.PHONY: clean
clean: cluster-down ## Remove what was built, and the cluster
	rm -rf bin dist .cluster

##@ Check

.PHONY: lint
lint: ## Run gofmt, go vet and golangci-lint; check that generated files are fresh
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "run gofmt -w on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet -tags e2e ./...
	$(TOOL) golangci-lint run ./...
	hack/generated-is-fresh

.PHONY: test
test: ## Run unit tests, then the end-to-end tests (these need root)
	@[ "$$(id -u)" != 0 ] || $(CLUSTER) packages
	@$(MAKE) --no-print-directory test-unit
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory test-e2e; else \
	printf '%s\n' '' '##################################################################' \
	'# SKIPPED: the end-to-end tests. They run a kubelet and containerd,' \
	'# which need root. Run "make test-e2e" as root for them.' \
	'##################################################################' >&2; fi

.PHONY: test-unit
test-unit: ## Run the unit tests of all packages
	go test ./...

.PHONY: test-e2e
test-e2e: ## Run the tests against a real one-node cluster (root; brings it up unless it is)
	$(E2E)

.PHONY: test-gpu
test-gpu: ## Run the tests that need an NVIDIA GPU and its driver
	go test -tags gpu -count=1 -v -run GPU ./pkg/...

.PHONY: bench
bench: ## Print the numbers that the README promises
	go test -run '^$$' -bench . -benchmem ./pkg/...
	go run ./test/bench

FUZZTIME ?= 60s
.PHONY: nightly
nightly: lint ## Run what is long and seldom red: lint, race detector, fuzzing, every platform
	go test -race -count=1 ./...
	go test -tags nightly -count=1 -run 'IsNeeded' ./pkg/agent/command
	hack/fuzz-all $(FUZZTIME)
	hack/build-platforms
	$(E2E) -run . -count=3

##@ Try

.PHONY: demo
demo: build ## Cluster up, agent on, "kubectl ekslogs" against it, a look at the bundle, all down (root)
	test/demo

.PHONY: cluster-up
cluster-up: ## Bring up a one-node cluster on this machine (root)
	$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Take the cluster away without a trace
	$(CLUSTER) down

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
