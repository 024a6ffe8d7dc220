#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tests/gpu/run.sh from its beginning to its end without a GPU: the same programs and scripts
# over test doubles of CUDA's libraries, so that what is wrong with them is found before there
# is a GPU; and commands on several GPUs. No figure it prints means anything.
# Usage: rehearse.sh BUILD_DIR [TAR]
#   BUILD_DIR  of the preset dev
#   TAR        what pack.sh wrote: its programs and bundles are rehearsed, and not BUILD_DIR's
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath "${1:?usage: rehearse.sh BUILD_DIR [TAR]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MGPU_REHEARSAL=$work/texts PYTHONDONTWRITEBYTECODE=1
mkdir "$MGPU_REHEARSAL" "$work/results"
libraries=$build/tests/rehearsal/libraries
# One that has NumPy, as the machine with the GPU must.
for PYTHON in python3 /usr/bin/python3; do
  "$PYTHON" -c 'import numpy' 2> /dev/null && break
done
export PYTHON

# The bundles' cubins are made where their texts are kept, and anew.
MGPU_DB=$work/bundles.db LD_LIBRARY_PATH=$libraries python3 "$root/tests/gpu/examples.py" \
  --bundle "$build/bin/mgpu-tune" "$root/examples" "$work/bundles" 16384 > "$work/bundles.log"
MGPU_DB=$work/bundles.db LD_LIBRARY_PATH=$libraries python3 "$root/tests/gpu/large.py" \
  --bundle "$build/bin/mgpu-tune" "$work/bundles" less >> "$work/bundles.log"
MGPU_DB=$work/bundles.db LD_LIBRARY_PATH=$libraries python3 "$root/tests/gpu/decode_steps.py" \
  --bundle "$build/bin/mgpu-tune" "$root/examples" "$work/bundles" less >> "$work/bundles.log"
bin=$build/bin scripts=$root/tests/gpu
if [[ -n ${2:-} ]]; then
  tar -xf "$2" -C "$work"
  bin=$(echo "$work"/mgpu-gpu*/bin) scripts=$(echo "$work"/mgpu-gpu*/tests/gpu)
fi

code=0
PATH=$here/bin:$PATH PYTHONPATH=$here/python LD_LIBRARY_PATH=$libraries \
  "$scripts/run.sh" "$bin" "$work/bundles" "$work/results" || code=$?
if [[ -s $MGPU_REHEARSAL/violations ]]; then
  echo "rules of CUDA's that were broken:"
  sort "$MGPU_REHEARSAL/violations" | uniq -c
  code=1
fi

# Where everything takes longer than it may, there is a result nonetheless, with all steps in it.
PATH=$here/bin:$PATH PYTHONPATH=$here/python LD_LIBRARY_PATH=$libraries \
  "$scripts/run.sh" "$bin" "$work/bundles" "$work/late" --budget 20 > "$work/late.log" || true
python3 "$here/check_result.py" --late "$work/late" 20 || { tail -20 "$work/late.log"; code=1; }
python3 "$scripts/read_results.py" "$work/results" "$work/read" > "$work/read.md" || { cat "$work/read.md"; code=1; }

# A GPU's exp is not the host's: two units of its last place off, what has to be close passes, and
# what has to have the bits does not.
off() { # EXAMPLE RULE [NAME=VALUE ...]
  local example=$1 rule=$2
  shift 2
  MGPU_REHEARSAL_EXP=2 MGPU_DB=$work/off.db LD_LIBRARY_PATH=$libraries \
    "$bin/gpu-replays" "$work/bundles/$example-main.mgpu" 20 120 main "$rule" "$@" -- cuda:0/4
}
digits=("x=$work/bundles/digits.csv.gz:0-63@0-1435" "y=$work/bundles/digits.csv.gz:64@0-1435" b1=zeros b2=zeros)
tolerance=$(PYTHONPATH=$scripts python3 -c 'import examples; print(examples.TOLERANCE)')
close='"host_bits":false.*"ok":true'
{ off attention "same:$tolerance" | grep "$close" && off digits "again:$tolerance" "${digits[@]}" | grep "$close"; } ||
  { echo "an exp that is two units off is not close enough"; code=1; }
differs() { { off "$@" || true; } | grep '"differs"' > /dev/null; }
differs attention bits || { echo "an exp that is two units off has the host's bits"; code=1; }
differs digits "same:$tolerance" "${digits[@]}" || { echo "training repeats its first step"; code=1; }
python3 "$here/check_result.py" "$work/results" "$root/bench/results" || code=1
# Several GPUs by processes, which run.sh does not do.
python3 "$here/gpus.py" "$build/bin/mgpu-tune" "$root" "$libraries" || code=1
exit $code
