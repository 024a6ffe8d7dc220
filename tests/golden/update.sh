#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes the help texts anew. Usage: update.sh MGPU_TUNE; then review `git diff tests/golden`.
set -euo pipefail
tune=$(realpath "${1:?usage: update.sh MGPU_TUNE}")
cd "$(dirname "$0")"
rm -f help-*.txt
commands() { sed -n '/^Commands:/,/^$/p' "$1" | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }
"$tune" --help > help-mgpu-tune.txt
for command in $(commands help-mgpu-tune.txt); do
  "$tune" "$command" --help > "help-$command.txt"
  for part in $(commands "help-$command.txt"); do
    "$tune" "$command" "$part" --help > "help-$command-$part.txt"
  done
done
