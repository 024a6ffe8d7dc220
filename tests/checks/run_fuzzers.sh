#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every libFuzzer program of a folder for SECONDS_EACH (20). Usage: run_fuzzers.sh BIN_DIR
set -euo pipefail
bin=${1:?usage: run_fuzzers.sh BIN_DIR}
shopt -s nullglob
fuzzers=("$bin"/fuzz_*)
if [[ ${#fuzzers[@]} -eq 0 ]]; then
  echo "no fuzz_* program in $bin: nothing was fuzzed" >&2
  exit 0
fi
for fuzzer in "${fuzzers[@]}"; do
  echo "== $fuzzer"
  "$fuzzer" -max_total_time="${SECONDS_EACH:-20}" -rss_limit_mb=2048 -print_final_stats=1
done
