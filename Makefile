# The two commands of the README are `make demo` and `make test`; each installs what it misses.
# `make check` is what a change must pass: everything below and the tests, with warnings as errors.

SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
CARGO := . .ci/toolchain && cargo
PYTHON := python3

.PHONY: help demo build test test-bench test-rust test-cluster check fmt clippy doc deny fuzz bench-smoke bench clean

help:
	@echo 'make demo         sort data larger than the memory allowed, to a file and to a view, and compare'
	@echo 'make test         all tests'
	@echo 'make test-cluster  all tests on Hadoop mini clusters, the slow ones too (java/cluster-tests)'
	@echo 'make check        formatting, lints, documentation, licences, a small bench, fuzzing, all tests'
	@echo 'make bench        every benchmark at full size: hours, and 45 GB of disk (bench/README.md)'
	@echo 'make clean        remove what was built and the demo data'

demo: build
	@$(PYTHON) bench/demo.py

build:
	@.ci/setup base rust fuse
	@$(CARGO) build --release --locked -p merganser-cli

test: test-bench test-rust

test-bench:
	@.ci/setup base
	@$(PYTHON) -m unittest discover -s bench/tests -t bench

test-rust:
	@.ci/setup base rust fuse nbd
	@$(CARGO) test --workspace --locked

test-cluster: build
	@mvn -B -f java/pom.xml verify -Pfaults

# The tests come last, so that their summary is the end of the output.
check: fmt clippy doc deny bench-smoke fuzz test

fmt:
	@.ci/setup base rust
	@$(CARGO) fmt --all --check

clippy:
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc:
	@$(CARGO) doc --workspace --no-deps --document-private-items --locked

doc: export RUSTDOCFLAGS := -D warnings

deny:
	@.ci/deny

fuzz:
	@.ci/fuzz 60

bench-smoke: build
	@$(CARGO) build --release --locked --workspace --examples
	@$(PYTHON) bench/run.py all --scale 0.005 --pairs 1 --peers gnu --warm --results target/bench-smoke

bench: build
	@$(CARGO) build --release --locked --workspace --examples
	@.ci/setup peers
	@$(PYTHON) bench/run.py all

clean:
	@$(CARGO) clean
	rm -rf demo bench/.venv bench/.work
