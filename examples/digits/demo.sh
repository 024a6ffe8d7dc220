#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Checks, plans, tunes, trains and evaluates the digits network on four host devices, and writes a
# report of the tuning.
# Usage: demo.sh MGPU_TUNE [OUTPUT_DIR]
set -euo pipefail
tune=$(realpath "${1:?usage: demo.sh MGPU_TUNE [OUTPUT_DIR]}")
here=$(cd "$(dirname "$0")" && pwd)
out=${2:-$(dirname "$tune")/../demo}
mkdir -p "$out"
out=$(realpath "$out")
program=$here/digits.mlir
data=$here/digits.csv.gz
rate=(--arg rate=0.5)
steps=600
budget=10s
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. check: races, deadlocks, mismatched collectives"
"$tune" check "$program" "${rate[@]}"

say "2. plan: list against serial, on four host devices"
for scheduler in list serial; do
  plan=("$tune" plan "$program" --target host:4 "${rate[@]}" --scheduler "$scheduler")
  "${plan[@]}" --explain --trace "$out/$scheduler.trace.json" > "$out/$scheduler.explain.txt"
  "${plan[@]}" --json > "$out/$scheduler.json"
  echo "-- $scheduler (each step and its reason: $out/$scheduler.explain.txt)"
  sed -n '/^makespan /,$p' "$out/$scheduler.explain.txt"
done
python3 - "$out" <<'PYTHON'
import json, sys
load = lambda name: json.load(open(f"{sys.argv[1]}/{name}.json"))
parallel, serial = load("list"), load("serial")
print(f"list {parallel['replay_us']:.1f} us, serial {serial['replay_us']:.1f} us, "
      f"bound {parallel['replay_bound_us']:.1f} us  (predicted: {parallel['model']})")
PYTHON

say "3. tune: plan, threads and kernels, for $budget (a longer --budget finds more)"
training=("${rate[@]}" --arg x="$data:0-63@0-1435" --arg y="$data:64@0-1435"
  --arg w1=random:1 --arg b1=zeros --arg w2=random:2 --arg b2=zeros)
"$tune" tune "$program" --target host:4 "${training[@]}" --budget "$budget" --db "$out/tuning.db"

say "4. replay: $steps training steps on 1436 digits, as tuned"
"$tune" run "$program" --target host:4 "${training[@]}" --repeat "$steps" --db "$out/tuning.db" \
  --out w1="$out/w1.npy" --out b1="$out/b1.npy" --out w2="$out/w2.npy" --out b2="$out/b2.npy"

say "5. accuracy on the 361 digits held back"
"$tune" run "$program" --entry eval --target host:4 \
  --arg x="$data:0-63@1436-1796" --arg y="$data:64@1436-1796" \
  --arg w1="$out/w1.npy" --arg b1="$out/b1.npy" --arg w2="$out/w2.npy" --arg b2="$out/b2.npy" \
  --out predicted="$out/predicted.npy" --out correct="$out/correct.npy"
python3 - "$out/correct.npy" <<'PYTHON'
import struct, sys
right = struct.unpack("<i", open(sys.argv[1], "rb").read()[-4:])[0]
print(f"{right} of 361 are right: {100 * right / 361:.1f} %")
sys.exit(right < 0.9 * 361)
PYTHON

say "6. timelines, for ui.perfetto.dev, and the report of the tuning, for a browser"
ls "$out"/*.trace.json
"$tune" report "$program" "${rate[@]}" --db "$out/tuning.db" -o "$out/report.html"
