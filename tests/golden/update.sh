#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes the help texts anew. Usage: update.sh MGPU_TUNE; then review `git diff tests/golden`.
set -euo pipefail
tune=$(realpath "${1:?usage: update.sh MGPU_TUNE}")
cd "$(dirname "$0")"
rm -f help-*.txt
"$tune" --help > help-mgpu-tune.txt
for command in $("$tune" --help | sed -n '/^Subcommands:/,$p' | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
  "$tune" "$command" --help > "help-$command.txt"
done
