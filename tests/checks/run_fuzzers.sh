#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every libFuzzer program of a folder for SECONDS_EACH (20) from its corpus. What breaks one is
# kept as BIN_DIR/crash-*: add it to the corpus with the fix. Usage: run_fuzzers.sh BIN_DIR
set -euo pipefail
bin=${1:?usage: run_fuzzers.sh BIN_DIR}
corpora="$(dirname "$0")/../fuzz/corpus"
shopt -s nullglob
fuzzers=("$bin"/fuzz_*)
if [[ ${#fuzzers[@]} -eq 0 ]]; then
  echo "no fuzz_* program in $bin: build the preset fuzz first" >&2
  exit 1
fi
found=$(mktemp -d) # libFuzzer adds what it finds to its first folder
trap 'rm -rf "$found"' EXIT
for fuzzer in "${fuzzers[@]}"; do
  name=$(basename "$fuzzer")
  echo "== $name"
  mkdir "$found/$name"
  "$fuzzer" -max_total_time="${SECONDS_EACH:-20}" -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$bin/" "$found/$name" "$corpora/${name#fuzz_}"
done
