# The entry points. Each installs what it needs and does not find into $(CACHE), outside the checkout.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kctl
export CARGO_TARGET_DIR ?= $(CACHE)/target
export KCTL_CACHE := $(CACHE)
BIN := $(CARGO_TARGET_DIR)/debug
# A failed test prints the chain of its errors; backtraces add nothing to it.
export RUST_LIB_BACKTRACE ?= 0
CARGO ?= cargo
# The seed of all random numbers in tests. Without one, each run draws its own and prints it.
SEED ?=
# SOAK_KILLS: at how many random moments the soak kills applies, labs and joining nodes. SEEDS: with how many seeds it runs the engine.
SOAK_KILLS ?= 50
SEEDS ?= 1000000
# How long libFuzzer runs each target of tests/fuzz, in seconds.
FUZZ_SECONDS ?= 3600

# Programs that tests run: kctl, and Go if there is one (its version is part of the key of lab content).
TOOLS = KCTL_BIN="$(BIN)/kctl" \
	PATH="$$(tests/lab/go 2>/dev/null || echo "$(BIN)"):$$(tests/venv tests/lint/requirements.txt)/bin:$$PATH"

# Before the first compile: checks that this machine has what a target needs, and installs or names what is missing.
READY := $(addprefix ready-,binaries agents release demo simulator test lint bench soak fuzz lab)

.PHONY: help binaries products agents release demo simulator test lint content bench soak fuzz lab lab-down $(READY)
# cargo uses all cores by itself, and prerequisites have to run in the order in which they are named.
.NOTPARALLEL:

help:
	@echo "make demo       create, change and delete a cluster in the AWS simulator, and watch"
	@echo "make simulator  the AWS simulator alone, to try kctl against"
	@echo "make test       every test; as root also those with a lab (55 minutes the first time on two cores: it builds Kubernetes too)"
	@echo "make lint       the checks that make test runs first: formatting, clippy, architecture invariants"
	@echo "make lab        as root: a cluster whose instances are real Linux hosts on this machine; make lab-down removes it"
	@echo "make bench      measurements: API calls, time, memory, size; as root also how long instances take to become nodes"
	@echo "make soak       the long tests; they take hours. Their output is in $(CACHE)/soak; SEEDS and SOAK_KILLS set the length"
	@echo "make fuzz       libFuzzer on everything that parses untrusted input, FUZZ_SECONDS for each of six targets; part of the soak"
	@echo "make binaries   kctl, nodeup, protokube and lab, in $(BIN)"
	@echo "make agents     nodeup and protokube as instances run them, for kctl on AWS; prints the variables to set"
	@echo "make release    kctl, nodeup and protokube for amd64 and arm64, with archives and checksums; prints their paths"

$(READY): ready-%:
	@tests/ready $*

binaries: ready-binaries
	$(CARGO) build --workspace --bins

# kctl, and what it stores for instances. Of the whole workspace, so that libraries have the features that everything is built with.
products:
	$(CARGO) build --workspace --bin kctl --bin nodeup --bin protokube

demo: ready-demo products
	PATH="$(BIN):$$PATH" tests/demo/run

simulator: ready-simulator products
	@PATH="$(BIN):$$PATH" tests/demo/simulator

agents: ready-agents binaries
	@echo "export PATH=$(BIN):\$$PATH KCTL_ASSETS=$$(tests/assets/build)"

release: ready-release
	tests/release/run

test: ready-test
	$(TOOLS) SEED=$(SEED) CARGO=$(CARGO) tests/run

lint: ready-lint
	PATH="$$(tests/venv tests/lint/requirements.txt)/bin:$$PATH" CARGO=$(CARGO) tests/lint/run

content: binaries
	PATH="$(BIN):$$PATH" tests/lab/prepare

bench: ready-bench
	$(CARGO) build --release --bin kctl
	KCTL_BIN="$(CARGO_TARGET_DIR)/release/kctl" tests/bench/run

soak: ready-soak content
	KCTL_ASSETS="$$(tests/assets/build)" $(TOOLS) SEEDS=$(SEEDS) KILLS=$(SOAK_KILLS) FUZZ_SECONDS=$(FUZZ_SECONDS) OUT=$(CACHE)/soak tests/bench/soak

fuzz: ready-fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) OUT=$(CACHE)/soak tests/fuzz/run

lab: ready-lab binaries
	KCTL_ASSETS="$$(AGENTS_PROFILE=test-agents tests/assets/build)" PATH="$(BIN):$$PATH" tests/lab/cluster

lab-down: binaries
	$(BIN)/lab down
