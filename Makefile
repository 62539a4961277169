# The entry points. What they need and do not find they install into $(CACHE), outside the checkout.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kctl
export CARGO_TARGET_DIR ?= $(CACHE)/target
export KCTL_CACHE := $(CACHE)
BIN := $(CARGO_TARGET_DIR)/debug
# A failed test tells its errors' chain; where each was made says nothing more.
export RUST_LIB_BACKTRACE ?= 0
CARGO ?= cargo
# What tests draw their lots from.
SEED ?= 1
# Moments at which the soak kills applies, labs and machines that join, and how many worlds of faults its engine goes through.
SOAK_KILLS ?= 50
SEEDS ?= 1000000
# How long libFuzzer tries each law of tests/fuzz.
FUZZ_SECONDS ?= 3600

# What tests run: our programs, nodeup and protokube as machines run them, Go where there is one (lab content is kept by its version).
TOOLS = KCTL_BIN="$(BIN)/kctl" KCTL_ASSETS="$$(tests/assets/build)" \
	PATH="$$(tests/lab/go 2>/dev/null || echo "$(BIN)"):$$(tests/venv tests/lint/requirements.txt)/bin:$$PATH"

# Before the first compile: what a target needs of this machine is there, or is installed, or named.
READY := $(addprefix ready-,binaries agents release demo simulator test lint bench soak fuzz lab)

.PHONY: help binaries agents release demo simulator test lint content bench soak fuzz lab lab-down $(READY)
# cargo uses all cores; what a target names first has to come first.
.NOTPARALLEL:

help:
	@echo "make demo       create, change and delete a cluster in the AWS simulator, and watch"
	@echo "make simulator  the AWS simulator alone, to try kctl against"
	@echo "make test       every test; as root those with real machines too (the first time 13 minutes more, for what they download)"
	@echo "make lint       what it checks first"
	@echo "make lab        as root: a cluster whose instances are real machines on this one; make lab-down removes it"
	@echo "make bench      figures: calls, time, memory, size; as root how long machines take to become nodes"
	@echo "make soak       the long tests, hours of them; what they said lies in $(CACHE)/soak. SEEDS, SOAK_KILLS: how long"
	@echo "make fuzz       libFuzzer on everything that reads what others wrote: FUZZ_SECONDS for each of six laws, part of the soak"
	@echo "make binaries   kctl, nodeup, protokube and lab, in $(BIN)"
	@echo "make agents     nodeup and protokube as machines run them, for kctl on AWS; prints what to set"
	@echo "make release    kctl, nodeup and protokube for amd64 and arm64, with archives and checksums; prints where they are"

$(READY): ready-%:
	@tests/ready $*

binaries: ready-binaries
	$(CARGO) build --workspace --bins

demo: ready-demo binaries
	PATH="$(BIN):$$PATH" tests/demo/run

simulator: ready-simulator binaries
	@PATH="$(BIN):$$PATH" tests/demo/simulator

agents: ready-agents binaries
	@echo "export PATH=$(BIN):\$$PATH KCTL_ASSETS=$$(tests/assets/build)"

release: ready-release
	tests/release/run

test: ready-test lint content
	$(TOOLS) SEED=$(SEED) CARGO=$(CARGO) tests/run

lint: ready-lint
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path tests/fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	PATH="$$(tests/venv tests/lint/requirements.txt)/bin:$$PATH" tests/lint/run

content: binaries
	PATH="$(BIN):$$PATH" tests/lab/prepare

bench: ready-bench
	$(CARGO) build --release --bin kctl
	KCTL_BIN="$(CARGO_TARGET_DIR)/release/kctl" tests/bench/run

soak: ready-soak content
	$(TOOLS) SEEDS=$(SEEDS) KILLS=$(SOAK_KILLS) FUZZ_SECONDS=$(FUZZ_SECONDS) OUT=$(CACHE)/soak tests/bench/soak

fuzz: ready-fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) OUT=$(CACHE)/soak tests/fuzz/run

lab: ready-lab binaries
	KCTL_ASSETS="$$(tests/assets/build)" PATH="$(BIN):$$PATH" tests/lab/cluster

lab-down: binaries
	$(BIN)/lab down
