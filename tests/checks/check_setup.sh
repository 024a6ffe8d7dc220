#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Where there is no apt, `make setup` names what is missing, and installs nothing.
set -euo pipefail
script="$(cd "$(dirname "$0")/../.." && pwd)/cmake/install-packages.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for name in bash dirname c++ cat git python3; do
  ln -s "$(command -v "$name")" "$folder/$name"
done
if PATH="$folder" "$folder/bash" "$script" 2>"$folder/said"; then
  echo 'it succeeds without ninja' && exit 1
fi
grep -q 'missing: Ninja (command ninja)' "$folder/said" || { cat "$folder/said"; exit 1; }
grep -q 'there is no apt here' "$folder/said"
! grep -q 'missing: git' "$folder/said" || { echo 'git is there'; exit 1; }
echo 'what is missing is named'
