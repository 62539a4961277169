# The entry points. What they need and do not find they install into $(CACHE), outside the checkout.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kctl
export CARGO_TARGET_DIR ?= $(CACHE)/target
export KCTL_CACHE := $(CACHE)
BIN := $(CARGO_TARGET_DIR)/debug
CARGO ?= cargo
# Moments at which the tests kill a lab; the soak takes more.
KILLS ?= 3

.PHONY: help demo simulator test lint bench soak lab lab-down lab-binaries

help:
	@echo "make demo    create, change and delete a cluster in the AWS simulator, and watch"
	@echo "make simulator  the AWS simulator alone, to try kctl against"
	@echo "make test    every test"
	@echo "make lab     as root: a cluster whose instances are real machines on this one; make lab-down removes it"
	@echo "make bench   figures: calls, time, memory, size"
	@echo "make soak    the long tests; their figures stand in docs/specification.md"

demo:
	$(CARGO) build --workspace --bins
	PATH="$(BIN):$$PATH" tests/demo/run

simulator:
	tests/demo/simulator

test: lint
	$(CARGO) build --workspace --bins
	PATH="$$(tests/venv tests/lint/requirements.txt)/bin:$$PATH" KCTL_BIN="$(BIN)/kctl" \
		KCTL_ASSETS="$$(tests/assets/build)" KCTL_LAB_KILLS=$(KILLS) $(CARGO) test --workspace
	tests/simulator/run-tests

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	PATH="$$(tests/venv tests/lint/requirements.txt)/bin:$$PATH" tests/lint/run

bench:
	$(CARGO) build --release --bin kctl
	PATH="$(CARGO_TARGET_DIR)/release:$$PATH" tests/bench/run

soak:
	KCTL_SIM_SEEDS=1000000 $(CARGO) test --release -p tests --test engine -- --nocapture

lab: lab-binaries
	KCTL_ASSETS="$$(tests/assets/build)" PATH="$(BIN):$$PATH" tests/lab/cluster

lab-down: lab-binaries
	$(BIN)/lab down

lab-binaries:
	$(CARGO) build --workspace --bins
