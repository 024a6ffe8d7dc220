#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every C++ file is as clang-format 14 leaves it (repository .clang-format).
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.c')
existing=()
for file in "${files[@]}"; do
  [[ -f "$file" ]] && existing+=("$file")
done
[[ ${#existing[@]} -gt 0 ]] || { echo "no source file found" >&2; exit 1; }
clang-format-14 --dry-run -Werror "${existing[@]}"
echo "${#existing[@]} files are formatted"
