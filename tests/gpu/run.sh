#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Everything that needs a card, from binaries built elsewhere.
# Usage: run.sh BIN_DIR [BUNDLE_DIR [RESULT_DIR]]
#   BIN_DIR     holds gpu-test, gpu-ranks and mgpu-tune of the preset runtime-only, or of any other
#   BUNDLE_DIR  what `examples.py --bundle MGPU_TUNE examples BUNDLE_DIR` wrote with a whole mgpu-tune;
#               default examples/, which needs the compiler half
#   RESULT_DIR  where <gpu>-<date>.json is written; default bench/results
# Fails (1) if a test does, 3 without a card.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(realpath "${1:?usage: run.sh BIN_DIR [BUNDLE_DIR [RESULT_DIR]]}")
examples=${2:-$root/examples}
results=${3:-$root/bench/results}
export MGPU_REQUIRE_GPU=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$(date +%s)
code=0

"$bin/mgpu-tune" doctor
"$bin/mgpu-tune" doctor --json > "$work/doctor.json" || exit 3
python3 -c 'import json, sys; sys.exit(0 if json.load(open(sys.argv[1])).get("cards") else 3)' \
  "$work/doctor.json" || { echo "no card" >&2; exit 3; }

# The tests that lose their context run alone.
lost='Replays.AFaultIsSaid:Replays.OneThatDoesNotEndIsGivenUp'
timeout 240 "$bin/gpu-test" --gtest_brief=1 --gtest_output="json:$work/gpu-test.json" \
  --gtest_filter="-$lost" || code=1
for test in ${lost//:/ }; do
  timeout 60 "$bin/gpu-test" --gtest_brief=1 --gtest_filter="$test" || code=1
done
for ranks in "1" "2" "4" "2 one" "4 one" "2 die"; do
  # Skipped (77) where the cards are too few, or NCCL too old.
  timeout 180 "$bin/gpu-ranks" $ranks
  case $? in 0 | 77) ;; *) echo "gpu-ranks $ranks failed" >&2; code=1 ;; esac
done
timeout 120 python3 "$root/tests/gpu/examples.py" "$bin/mgpu-tune" "$examples" 1000 \
  > "$work/examples.jsonl" || code=1
cat "$work/examples.jsonl"
if command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    timeout 120 compute-sanitizer --tool $tool --error-exitcode 1 \
      "$bin/gpu-test" --gtest_brief=1 --gtest_filter='Collectives.*:Replays.CoverTheWholeGrid' \
      > "$work/$tool.txt" 2>&1 || { tail -20 "$work/$tool.txt"; code=1; }
  done
fi

mkdir -p "$results"
python3 - "$work" "$results" "$code" $(($(date +%s) - started)) << 'PYTHON'
import datetime, json, os, re, sys
work, results, code, seconds = sys.argv[1:]
doctor = json.load(open(f"{work}/doctor.json"))
tests = {}
if os.path.exists(f"{work}/gpu-test.json"):
    full = json.load(open(f"{work}/gpu-test.json"))
    tests = {key: full[key] for key in ("tests", "failures", "errors", "time")}
lines = open(f"{work}/examples.jsonl").read().splitlines()
gpu = re.sub(r"[^a-z0-9]+", "-", doctor["cards"][0]["name"].lower()).strip("-")
path = f"{results}/{gpu}-{datetime.date.today()}.json"
with open(path, "w") as file:
    json.dump({"passed": code == "0", "seconds": int(seconds), "doctor": doctor, "tests": tests,
               "examples": [json.loads(line) for line in lines if line.startswith("{")],
               "sanitizer": sorted(name[:-4] for name in os.listdir(work) if name.endswith("check.txt"))},
              file, indent=1)
print(path)
PYTHON
exit $code
