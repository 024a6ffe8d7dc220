# The two commands of README.md, and what takes longer. Nothing here knows more about
# the build than CMakePresets.json does.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
CTEST := ctest --output-on-failure -j $(JOBS)

.PHONY: help setup build demo check check-all bench

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## Install the Debian packages that are missing
	@cmake/install-packages.sh

# The build commands, for a preset named by the caller.
define BUILD
cmake --preset $(1) -Wno-dev > build/$(1).configure.log 2>&1 || { cat build/$(1).configure.log >&2; exit 1; }
cmake --build --preset $(1) -j $(JOBS)
endef

build: setup ## Configure and build the dev preset
	@mkdir -p build
	@$(call BUILD,dev)

demo: build ## Plan, tune and train the digits network on four host devices; ends with a report
	@examples/digits/demo.sh build/dev/bin/mgpu-tune

check: build ## All tests; the runtime half with g++ and under the sanitizers as well
	@$(CTEST) --preset dev
	@$(call BUILD,runtime-only)
	@$(CTEST) --preset runtime-only
	@$(call BUILD,asan-ubsan)
	@$(CTEST) --preset asan-ubsan
	@$(call BUILD,tsan)
	@$(CTEST) --preset tsan

check-all: check ## And: each header alone, 200 kills of tune, kernels in all corners, a rehearsal of what runs on cards, both halves with g++ and sanitized, the fuzzers for a while
	@tests/checks/check_headers.sh build/dev
	@MGPU_FAULTS=all $(CTEST) --preset dev -L faults
	@MGPU_CORNERS=all $(CTEST) --preset dev -V -R Corners | grep -E 'corners:|tests passed|\*\*\*|FAILED'
	@if [[ -e build/dev/tests/rehearsal/libraries/libcuda.so.1 ]]; then \
	  cmake --preset runtime-static -Wno-dev > build/runtime-static.configure.log; \
	  cmake --build --preset runtime-static -j $(JOBS) --target mgpu-tune gpu-test gpu-ranks gpu-replays bench-cuda; \
	  tests/gpu/pack.sh build/dev build/runtime-static build/mgpu-gpu.tar.gz; \
	  tests/rehearsal/rehearse.sh build/dev build/mgpu-gpu.tar.gz; \
	else echo 'no headers of CUDA: what runs on cards is not rehearsed'; fi
	@$(call BUILD,gcc)
	@$(CTEST) --preset gcc
	@$(call BUILD,asan-compiler)
	@$(CTEST) --preset asan-compiler
	@$(call BUILD,fuzz)
	@$(CTEST) --preset fuzz -L fuzz
	@tests/checks/run_fuzzers.sh build/fuzz/bin

bench: setup ## Run every benchmark suite
	@mkdir -p build
	@$(call BUILD,release)
	@shopt -s nullglob; suites=(build/release/bin/bench-*); \
	  [[ $${#suites[@]} -gt 0 ]] || { echo 'no benchmark suite is built in this version' >&2; exit 1; }; \
	  for suite in "$${suites[@]}"; do echo "== $$suite"; "$$suite"; done
