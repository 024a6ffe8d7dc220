#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every header compiles alone. Usage: check_headers.sh BUILD_DIR [COMPILER]
# BUILD_DIR holds the generated headers of a built dev preset.
set -euo pipefail
build=$(realpath "${1:?usage: check_headers.sh BUILD_DIR [COMPILER]}")
compiler=${2:-clang++-22}
cd "$(dirname "$0")/../.."
# Headers of the CUDA target need the toolkit's, where the build found one.
include=$(sed -n 's/^MGPU_NVRTC_INCLUDE:PATH=//p' "$build/CMakeCache.txt")
skipped=()
[[ -d "$include" ]] || { include=/nonexistent; skipped=(':!device/cuda' ':!tests/unit/cuda'); }
export build compiler include
compile() {
  [[ -f "$1" ]] || return 0
  "$compiler" -std=c++20 -fsyntax-only -w -x c++ -DFMT_SHARED -I. -I"$build" -I"$(dirname "$1")" \
    -isystem /usr/lib/llvm-22/include -isystem "$include" "$1" || { echo "$1 does not compile alone" >&2; return 1; }
}
export -f compile
git ls-files -z --cached --others --exclude-standard -- '*.h' "${skipped[@]}" |
  xargs -0 -P "$(nproc)" -I{} bash -c 'compile {}'
echo "every header compiles alone"
