#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every C++ file is as clang-format 14 leaves it (repository .clang-format), and no file has marks of a merge.
set -euo pipefail
cd "$(dirname "$0")/../.."
if git grep --untracked -nE '^(<{7}|>{7}|\|{7}) ' -- ':!third_party'; then
  echo 'these are marks of a merge that nobody ended' >&2
  exit 1
fi
mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.c')
existing=()
for file in "${files[@]}"; do
  [[ -f "$file" ]] && existing+=("$file")
done
[[ ${#existing[@]} -gt 0 ]] || { echo "no source file found" >&2; exit 1; }
clang-format-14 --dry-run -Werror "${existing[@]}"
echo "${#existing[@]} files are formatted"
