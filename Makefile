# The two commands of the README are `make demo` and `make test`; each installs the packages that it needs.
# A change must pass `make check`: everything below and the tests, with warnings as errors.

SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
CARGO := . .ci/toolchain && cargo
PYTHON := python3

.PHONY: help demo demo-disks all build core install uninstall dist guests test test-build test-bench test-ci test-java test-cluster test-packaging test-python test-rust test-times test-wheel wheel check lints-and-tests fmt names clippy doc deny fuzz wing-clippy wing-test sanitize bench-smoke bench campaign campaign-smoke test-campaign clean

help:
	@echo 'make demo         sort data larger than the memory allowed, to a file and to a view, and compare'
	@echo 'make demo-disks   sort on an emulated hard disk and on an emulated SSD, with a page of each'
	@echo 'make build        all programs, optimised, into target/release (also: make all)'
	@echo 'make core         the command alone: sort, views, checks, test data'
	@echo 'make install      what was built, with manual and completions, into PREFIX=/usr/local (also: DESTDIR, ONLY="merganser")'
	@echo 'make uninstall    remove it'
	@echo 'make dist         archives, packages for Debian and Red Hat and bills of materials, into target/dist'
	@echo 'make wheel        the Python package for this machine, into target/wheels'
	@echo 'make test         all tests'
	@echo 'make test-cluster  the long tests on Hadoop clusters (hadoop/java/cluster-tests)'
	@echo 'make check        formatting, lints, documentation, licences, a small bench, all tests'
	@echo '                  (WING=core, tables, python, near, hadoop, array or lab: its lints, its tests and those of its program)'
	@echo 'make campaign     kills, power cuts, full disks, failing calls, damage, for an hour (MINUTES=60; docs/testing.md)'
	@echo 'make fuzz         libFuzzer looks for bytes that break decoders, for MINUTES=60 in all'
	@echo 'make sanitize     the unsafe code of the engine under Miri, whole sorts under AddressSanitizer'
	@echo 'make bench        every benchmark at full size: hours, and 45 GB of disk (lab/bench/README.md)'
	@echo 'make clean        remove the build output and the demo data'

# The programs: the command itself, and those that have its other commands.
PROGRAMS := merganser merganser-tables-command merganser-near merganser-hadoop merganser-array-command merganser-lab
# How they are compiled, and the folder in which they are then.
PROFILE := release
FROM := target/$(PROFILE)

demo:
	@.ci/setup base rust fuse
	@$(CARGO) build --profile demo --locked -p merganser
	@$(PYTHON) lab/bench/demo.py

demo-disks:
	@.ci/setup base rust fuse
	@$(CARGO) build --profile demo --locked -p merganser -p merganser-lab
	@$(PYTHON) lab/bench/demo.py --disks

# With everything: `make all`. --version says the commit.
WITH_COMMIT = export MERGANSER_COMMIT="$$(packaging/identity)";
all build:
	@.ci/setup base rust fuse
	@$(WITH_COMMIT) $(CARGO) build --profile $(PROFILE) --locked $(PROGRAMS:%=-p %)

core:
	@.ci/setup base rust fuse
	@$(WITH_COMMIT) $(CARGO) build --profile $(PROFILE) --locked -p merganser

# They compile nothing: build as yourself, and install as root. Options of make reach the script by its environment.
export PREFIX DESTDIR ONLY
install:
	@packaging/install $(FROM)

uninstall:
	@packaging/install --remove

# Also: TARGET=x86_64-unknown-linux-musl, for programs that run on every Linux.
export TARGET
dist:
	@.ci/setup base rust fuse packages
	@from="$$(packaging/build $(PROFILE))" && packaging/dist "$$from" target/dist
	@ls -l target/dist

# The SSDlets of near/wasm/guests, into target/guests. Tests compile them by the same script.
guests:
	@.ci/setup base rust guests
	@for language in c rust assemblyscript; do near/wasm/guests/build $$language target/guests; done

# Tests in Python mostly wait, so they run next to the others, and print when all have ended. Those in Java keep both
# processors busy with many JVMs: next to them, tests in Rust took more than twice as long, and waits ran out of time. A
# failure stops none of them: one run shows all that fail.
# All packages come first: two steps can't install at once.
TESTS := --beside test-python test-rust test-java test-packaging test-wheel test-bench test-campaign test-ci
TESTED_WITH := base rust java fuse nbd blast compressors guests flight wheel packages
test:
	@.ci/setup $(TESTED_WITH)
	@.ci/steps test-build
	@.ci/steps --all $(TESTS)
	@.ci/steps test-times

test-bench:
	@.ci/setup base
	@$(PYTHON) -m unittest discover -s lab/bench/tests -t lab/bench

test-campaign:
	@.ci/setup base
	@$(PYTHON) -m unittest discover -s quality/campaign/tests -t quality/campaign

test-ci:
	@.ci/setup base
	@$(PYTHON) -m unittest discover -s .ci/tests

test-packaging: test-build
	@.ci/setup base packages
	@BUILT=$(BUILT) $(PYTHON) -m unittest discover -s packaging/tests

# Maven is quiet about tests that pass, so their totals are added up from its reports. The native library is that of
# the build of the tests; an optimised one would take two minutes more.
test-java: test-build
	@.ci/setup base rust java
	@MERGANSER_NATIVE=$(BUILT)/libmerganser_hadoop.so .ci/java verify

# The build comes first, because the command merganser runs next to NodeManagers; without it they would merge in
# Java. The tests take about 25 minutes.
test-cluster: build
	@.ci/setup base rust java
	@JAVA_MINUTES=60 .ci/java verify -Pfaults

# Clients of a node that are not ours; those that can't be installed are left out.
test-python: test-build
	@.ci/setup flight
	@MERGANSER=$(BUILT)/merganser .ci/python

# The Python package, over its wheel. The library in it is that of the build of all tests (.ci/wheel says why).
test-wheel: test-build
	@.ci/setup wheel
	@.ci/test-wheel $(BUILT)

# The wheel of a release, for CPython 3.10 and newer; PROFILE=demo compiles it sooner. A free-threaded Python needs a wheel of
# its own: INTERPRETER=python3.14t.
PROFILE := release
wheel:
	@.ci/setup base rust wheel
	@. .ci/toolchain && cd python && ../target/python/packages/bin/maturin build --profile $(PROFILE) --locked \
		--out ../target/wheels $(INTERPRETER:%=--interpreter %)

# Many of them wait for processes and clocks, so twice as many run as there are processors. A call for doc tests and all
# others would also build the examples. The slowest tests are named at the end.
test-rust: export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
test-rust: test-build
	@.ci/setup fuse nbd blast compressors guests
	@status=0; $(CARGO) test --workspace --locked --no-fail-fast --doc || status=$$?; \
		. .ci/toolchain && .ci/slowest 20 cargo test --workspace --locked --no-fail-fast --tests || status=$$?; \
		exit $$status

# It compares the times of a program with those of a model, so nothing else may run meanwhile. It prints what it had to
# repeat: a run without takes half a minute.
test-times: test-build
	@.ci/setup fuse nbd
	@$(CARGO) test --workspace --locked --test system -- --ignored --nocapture emulate::times

# One build of the command, the tests and the examples that lab/bench/run.py runs, for all steps of `make check` that run
# something. Another set of packages would choose other features of the libraries, and compile most of them again. The
# other examples are only checked, by clippy.
BUILT := $(CURDIR)/target/debug
BENCH_EXAMPLES := raw_io view_reads
test-build:
	@.ci/setup base rust fuse
	@$(CARGO) test --workspace --locked --no-run --tests
	@$(CARGO) build --workspace --lib $(BENCH_EXAMPLES:%=--example %) --locked

# Each step says how long it took; docs/testing.md ("How long CI takes") has measured times.
ifndef WING
check:
	@.ci/setup $(TESTED_WITH)
	@.ci/steps lints-and-tests
	@.ci/steps test-times
else
# One wing alone: its lints, the tests of its crates, and those of its program; the core's with every wing.
check:
	@.ci/setup base rust fuse nbd blast compressors guests
	@. .ci/toolchain && .ci/arrows $(WING) > /dev/null
	@.ci/steps fmt names wing-clippy wing-test
endif

# The crates of a wing, as .ci/arrows has them.
WING_CRATES = $(shell . .ci/toolchain && .ci/arrows $(WING))

# The programs that the tests of a wing run: its own, the core's, and for a lab those that make its devices and volumes.
WING_PROGRAMS_core := merganser
WING_PROGRAMS_tables := merganser merganser-tables-command
WING_PROGRAMS_python := merganser merganser-tables-command
WING_PROGRAMS_near := merganser merganser-near
WING_PROGRAMS_hadoop := merganser merganser-hadoop
WING_PROGRAMS_array := merganser merganser-array-command
WING_PROGRAMS_lab := merganser merganser-array-command merganser-lab
WING_TESTED = $(WING_CRATES) $(WING_PROGRAMS_$(WING)) merganser-product-tests
# Their tests alone: without a feature, those of the core.
WING_FEATURES = --no-default-features --features "$(patsubst %,merganser-product-tests/%,$(filter-out core,$(WING)))"

wing-clippy:
	@$(CARGO) clippy $(WING_CRATES:%=-p %) --all-targets --locked -- -D warnings

wing-test: export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# One build of all of it: of other packages, libraries would have other features.
wing-test:
	@$(CARGO) test $(WING_TESTED:%=-p %) $(WING_FEATURES) --locked --no-fail-fast

lints-and-tests: export MERGANSER := $(BUILT)/merganser
lints-and-tests:
	@.ci/steps fmt names clippy doc deny test-build
	@.ci/steps --all $(TESTS) bench-smoke campaign-smoke

fmt:
	@.ci/setup base rust java
	@$(CARGO) fmt --all --check
	@.ci/java spotless:check

# One name, one type; which crate may know which; and no modules that import one another.
names:
	@.ci/setup base rust
	@.ci/names
	@. .ci/toolchain && .ci/arrows
	@.ci/circles

clippy:
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc:
	@$(CARGO) doc --workspace --no-deps --document-private-items --locked

doc: export RUSTDOCFLAGS := -D warnings

deny:
	@.ci/deny

# The tests try each target on changed examples. This is the search, which needs a nightly compiler.
fuzz:
	@.ci/fuzz $$((60 * $(MINUTES)))

# It takes too long for `make check` (docs/testing.md).
sanitize:
	@.ci/sanitize

bench-smoke: test-build
	@$(PYTHON) lab/bench/run.py all --scale 0.005 --pairs 1 --peers gnu --warm --results target/bench-smoke \
		--merganser $(BUILT)/merganser --examples $(BUILT)/examples

# The fault campaign over the real command. MINUTES says how long; CAMPAIGN takes other options, such as --seed 7.
MINUTES := 60
campaign: build
	@.ci/setup campaign
	@$(PYTHON) quality/campaign/run.py --minutes $(MINUTES) --json target/campaign.json --table target/campaign.md $(CAMPAIGN)

campaign-smoke: test-build
	@$(PYTHON) quality/campaign/run.py --smoke --merganser $(BUILT)/merganser $(CAMPAIGN)

bench: build
	@$(CARGO) build --release --locked --workspace --examples
	@.ci/setup peers
	@$(PYTHON) lab/bench/run.py all

clean:
	@$(CARGO) clean
	rm -rf hadoop/java/target hadoop/java/*/target demo lab/bench/.venv lab/bench/.work
