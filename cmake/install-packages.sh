#!/usr/bin/env bash
# Installs what cmake/packages.txt lists and this machine lacks. Needs root only when something is missing.
# Usage: install-packages.sh [--without-tests]
# With --without-tests, the packages that only tests and benchmarks need are left out.
set -euo pipefail
list="$(dirname "$0")/packages.txt"
missing=()
while read -r package; do
  [[ "${1:-}" == --without-tests && "$package" == '# Tests and benchmarks'* ]] && break
  [[ -z "$package" || "$package" == \#* ]] && continue
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done < "$list"
[[ ${#missing[@]} -eq 0 ]] && exit 0
echo "installing: ${missing[*]}" >&2
if [[ $(id -u) -ne 0 ]]; then
  echo "run as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
