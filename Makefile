# The two commands of README.md, and what takes longer. Nothing here knows more about
# the build than CMakePresets.json does.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
CTEST := ctest --output-on-failure -j $(JOBS)

.PHONY: help setup build demo packages check check-sanitizers check-all bench

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: ## Install the Debian packages that are missing
	@cmake/install-packages.sh

# For a preset: $(call CONFIGURE,preset,options of cmake) and $(call BUILD,preset).
CONFIGURE = mkdir -p build && cmake --preset $(1) -Wno-dev $(2) > build/$(1).configure.log 2>&1 || { cat build/$(1).configure.log >&2; exit 1; }
BUILD = $(call CONFIGURE,$(1)); cmake --build --preset $(1) -j $(JOBS)

# The dev preset compiles each file alone, for those who change files. A tree that was not configured
# yet compiles eight together, 32 where they read MLIR, which is faster where all are compiled once.
DEV = $(call CONFIGURE,dev,$(if $(wildcard build/dev/build.ninja),,-DCMAKE_UNITY_BUILD=ON $(1)))

build: setup ## Configure and build the dev preset
	@$(DEV); cmake --build --preset dev -j $(JOBS)

# Builds what is installed, and installs nothing that only tests need. Where the dev preset has been built
# with its tests, it stays as it is.
demo: ## Build and install mgpu into build/mgpu; check, plan, train, tune and report on four host devices
	@echo 'make demo builds mgpu (about 16 minutes of CPU time, so 9 on two cores), installs it into build/mgpu and'
	@echo 'runs a demonstration of one minute. Outside of build/ it adds Debian packages alone, if some are missing.'
	@cmake/install-packages.sh --without-tests
	@[[ -e build/dev/build.ninja ]] || { $(call DEV,-DMGPU_TESTS=OFF); }
	@cmake/build.sh build/dev $(JOBS) installed
	@cmake --install build/dev --prefix build/mgpu > build/install.log
	@examples/digits/demo.sh build/mgpu build/demo

packages: ## A wheel with everything, Debian packages and a tarball that need the C library alone: build/static/packages
	@cmake/install-packages.sh --without-tests
	@$(call CONFIGURE,static,-DMGPU_TESTS=OFF)
	@cmake/build.sh build/static $(JOBS) packages

check: build ## All tests, and those of the half that needs no LLVM, built with g++
	@$(CTEST) --preset dev
	@$(call BUILD,runtime-only)
	@$(CTEST) --preset runtime-only

# What has threads of its own: kernels' compilers, devices, databases, replays and ranks.
THREADED := capture_test compile_test db_test device_test mgt_test

check-sanitizers: setup ## The half that needs no LLVM under the sanitizers; what has threads under that for races
	@$(call BUILD,asan-ubsan)
	@$(CTEST) --preset asan-ubsan
	@$(call CONFIGURE,tsan); cmake --build --preset tsan -j $(JOBS) --target $(THREADED) embed_threads
	@$(CTEST) --preset tsan -R '^($(subst $() ,|,$(strip $(THREADED))))[.]|^embed[.]threads$$'

check-all: check check-sanitizers ## Both; the long sweeps, each header alone, a rehearsal of what runs on GPUs, both halves with g++ and sanitized, the fuzzers
	@tests/checks/check_headers.sh build/dev
	@MGPU_FAULTS=all $(CTEST) --preset dev -L faults
	@$(call BUILD,tsan)
	@$(CTEST) --preset tsan
	@MGPU_SWEEPS=all $(CTEST) --preset dev -R '^(test-kernels|test-cuda-kernels|test-ptx|conformance|conformance-cuda|cuda-corners|planner_tests|device_test|gpu-dialect|mpmd|shard|stablehlo|pjrt|tensor|growth)[.]|^bundles.examples$$|^distributed.harm|^rehearsal.c-interface$$|^embed.examples_by_calls$$'
	@MGPU_DB=build/asan-ubsan/fuzz.db build/asan-ubsan/bin/fuzz_calls 120
	@build/asan-ubsan/bin/fuzz_bundles tests/bundles/ops.mgpu 120
	@MGPU_CORNERS=all $(CTEST) --preset dev -V -R Corners | grep -E 'corners:|tests passed|\*\*\*|FAILED'
	@if [[ -e build/dev/tests/rehearsal/libraries/libcuda.so.1 ]]; then \
	  $(call CONFIGURE,runtime-static); \
	  cmake --build --preset runtime-static -j $(JOBS) --target installed gpu-test gpu-ranks gpu-replays bench-cuda; \
	  $(CTEST) --preset runtime-static -R '^install.tarball$$'; \
	  tests/gpu/pack.sh build/dev build/runtime-static build/mgpu-gpu.tar.gz; \
	  tests/rehearsal/rehearse.sh build/dev build/mgpu-gpu.tar.gz; \
	else echo 'no headers of CUDA: what runs on GPUs is not rehearsed'; fi
	@$(call CONFIGURE,static); cmake --build --preset static -j $(JOBS) --target packages
	@$(CTEST) --preset static -R '^install.(wheel|container)$$'
	@$(call BUILD,gcc)
	@$(CTEST) --preset gcc
	@$(call BUILD,asan-compiler)
	@$(CTEST) --preset asan-compiler
	@$(call BUILD,fuzz)
	@$(CTEST) --preset fuzz -L fuzz
	@tests/checks/run_fuzzers.sh build/fuzz/bin

bench: setup ## Run every benchmark suite
	@$(call BUILD,release)
	@shopt -s nullglob; suites=(build/release/bin/bench-*); \
	  [[ $${#suites[@]} -gt 0 ]] || { echo 'no benchmark suite is built in this version' >&2; exit 1; }; \
	  for suite in "$${suites[@]}"; do echo "== $$suite"; "$$suite"; done
