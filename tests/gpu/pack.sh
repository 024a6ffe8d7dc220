#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One archive of all that run.sh needs on a machine with a GPU: programs that need the C library
# alone, bundles, and the scripts. There:
#   tar -xf mgpu-gpu.tar.gz && mgpu-gpu/run
# Usage: pack.sh BUILD_DIR STATIC_DIR OUT.tar.gz
#   BUILD_DIR   of the preset dev, whose mgpu-tune makes the bundles
#   STATIC_DIR  of the preset runtime-static
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath "${1:?usage: pack.sh BUILD_DIR STATIC_DIR OUT.tar.gz}")
static=$(realpath "${2:?usage: pack.sh BUILD_DIR STATIC_DIR OUT.tar.gz}")
out=$(realpath -m "${3:?usage: pack.sh BUILD_DIR STATIC_DIR OUT.tar.gz}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/mgpu-gpu
programs="mgpu-tune gpu-test gpu-ranks gpu-replays bench-cuda"
most=$((45 << 20)) # bytes that may travel
newest=2.36        # Debian 12's C library

mkdir -p "$top"/{bin,tests/gpu,bench/results}
for program in $programs; do
  cp "$static/bin/$program" "$top/bin/"
  needed=$(objdump -p "$top/bin/$program" | awk '$1 == "NEEDED" { print $2 }')
  wrong=$(grep -vE '^(libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2)$' <<< "$needed" || true)
  [[ -z $wrong ]] || { echo "$program needs $wrong" >&2; exit 1; }
  if objdump -p "$top/bin/$program" | grep -E 'R(UN)?PATH'; then
    echo "$program looks for libraries where this machine has them" >&2
    exit 1
  fi
  version=$(objdump -T "$top/bin/$program" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -1)
  [[ $(printf '%s\n' "$version" "$newest" | sort -V | tail -1) == "$newest" ]] ||
    { echo "$program needs a C library of $version" >&2; exit 1; }
done
cp "$here"/*.py "$here"/{run.sh,products.mlir} "$top/tests/gpu/"
MGPU_DB=$work/pack.db PYTHONDONTWRITEBYTECODE=1 python3 "$here/examples.py" --bundle \
  "$build/bin/mgpu-tune" "$root/examples" "$top/bundles" > "$work/bundles.log" ||
  { cat "$work/bundles.log" >&2; exit 1; }
# What has no bundle is a row of the result.
MGPU_DB=$work/pack.db PYTHONDONTWRITEBYTECODE=1 python3 "$here/large.py" --bundle \
  "$build/bin/mgpu-tune" "$top/bundles" >> "$work/bundles.log" || echo "some of large.py have no bundle" >&2
MGPU_DB=$work/pack.db PYTHONDONTWRITEBYTECODE=1 python3 "$here/decode_steps.py" --bundle \
  "$build/bin/mgpu-tune" "$root/examples" "$top/bundles" >> "$work/bundles.log"
cat > "$top/run" << 'RUN'
#!/bin/sh
# All tests and measurements, for less than 7 minutes; the result goes to the folder named, or here.
# With a folder also --only STEP,... and --budget SECONDS.
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/bench/results}
[ $# -eq 0 ] || shift
exec "$here/tests/gpu/run.sh" "$here/bin" "$here/bundles" "$out" "$@"
RUN
chmod +x "$top/run"
git -C "$root" rev-parse HEAD > "$top/commit" 2> /dev/null || true
tar -C "$work" --sort=name --owner=0 --group=0 --mtime=@0 -czf "$out" mgpu-gpu
bytes=$(stat -c %s "$out")
((bytes < most)) || { echo "$out has $bytes bytes, more than $most" >&2; exit 1; }

# As it will be there: another folder, nothing of this environment.
mkdir "$work/there"
tar -C "$work/there" -xf "$out"
there=$work/there/mgpu-gpu
try() { # the exit code there must be, and the command
  local wanted=$1 code=0
  shift
  env -i PATH=/usr/bin:/bin HOME="$work/there" "$@" > "$work/try.log" 2>&1 || code=$?
  ((code == wanted)) || { cat "$work/try.log"; echo "$*: exit code $code"; exit 1; } >&2
}
try 0 "$there/bin/mgpu-tune" --help
try 0 "$there/bin/bench-cuda" --help
try 0 "$there/bin/gpu-test" --gtest_list_tests
try 2 "$there/bin/gpu-ranks"
try 2 "$there/bin/gpu-replays"
try 0 "$there/bin/mgpu-tune" run "$there/bundles/mlp-main.mgpu" --arg x=random:1 --arg w1=random:2 --arg w2=random:3
[[ -e /dev/nvidiactl ]] || try 3 "$there/run" "$work/none" # there is no GPU here
echo "$out: $bytes bytes"
