#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `make demo` shows once mgpu is built: a network for handwritten digits is checked, planned, trained and judged
# on four host devices, the kernels of another program are tuned, and a program is built and run from Python.
# Usage: demo.sh PREFIX OUTPUT, in the root of the project; PREFIX is where mgpu is installed.
set -euo pipefail
prefix=${1:?usage: demo.sh PREFIX OUTPUT}
out=${2:?usage: demo.sh PREFIX OUTPUT}
export PATH="$PWD/$prefix/bin:$PATH" PYTHONPATH="$PWD/$prefix/share/mgpu/python"
mkdir -p "$out"
rm -f "$out/tuning.db"
digits=examples/digits/digits.mlir
data=examples/digits/digits.csv.gz
steps=600
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# Shows a command as it can be typed, and runs it.
run() { printf '$ %s\n' "$*"; "$@"; }

say "1. check: races, deadlocks and mismatched collectives of a training step on four devices"
run mgpu-tune check $digits --arg rate=0.5

say "2. plan: which kernel and copy runs where and when"
run mgpu-tune plan $digits --target host:4 --arg rate=0.5 --svg "$out/plan.svg"

say "3. replay: $steps training steps on 1,436 digits"
run mgpu-tune run $digits --target host:4 --arg rate=0.5 --repeat $steps \
  --arg x=$data:0-63@0-1435 --arg y=$data:64@0-1435 --arg w1=random:1 --arg b1=zeros --arg w2=random:2 --arg b2=zeros \
  --out w1="$out/w1.npy" --out b1="$out/b1.npy" --out w2="$out/w2.npy" --out b2="$out/b2.npy"

say "4. the trained network on the 361 digits held back"
run mgpu-tune run $digits --entry eval --target host:4 --arg x=$data:0-63@1436-1796 --arg y=$data:64@1436-1796 \
  --arg w1="$out/w1.npy" --arg b1="$out/b1.npy" --arg w2="$out/w2.npy" --arg b2="$out/b2.npy" \
  --out predicted="$out/predicted.npy" --out correct="$out/correct.npy"
python3 - "$out/correct.npy" <<'PYTHON'
import struct, sys
right = struct.unpack("<i", open(sys.argv[1], "rb").read()[-4:])[0]
print(f"{right} of 361 are right: {100 * right / 361:.1f} %")
sys.exit(right < 0.9 * 361)
PYTHON

say "5. tune: kernels, plan and threads of a program that draws the Mandelbrot set"
run mgpu-tune tune examples/mandelbrot/mandelbrot.mlir --budget 10s --db "$out/tuning.db"
run mgpu-tune report --db "$out/tuning.db" -o "$out/report.html"

say "6. the same from Python: two devices add their halves of two arrays"
run python3 examples/embed/step.py

say "Go on:"
echo "  open  $out/plan.svg and $out/report.html"
echo "  type  export PATH=\$PWD/$prefix/bin:\$PATH PYTHONPATH=\$PWD/$prefix/share/mgpu/python"
echo "  type  mgpu-tune check YOUR-PROGRAM     (docs/tutorial.md begins there)"
