#!/usr/bin/env bash
# Installs what cmake/packages.txt lists and this machine lacks. Needs root only when something is missing.
# Usage: install-packages.sh [--without-tests]
# With --without-tests, the packages that only tests and benchmarks need are left out. A browser is installed where
# MGPU_REQUIRE_BROWSER asks for one. Where there is no apt, it says what is missing.
set -euo pipefail
here="$(dirname "$0")"
# Other distributions have other names: what must be there is told by its command, or by a header of it.
name_missing() {
  local found=0 what probe name
  has_header() { echo "#include <$1>" | c++ -x c++ -std=c++20 -E -I/usr/lib/llvm-22/include - >/dev/null 2>&1; }
  while IFS='|' read -r what probe name; do
    case "$what" in
      command) command -v "$probe" >/dev/null && continue ;;
      header) has_header "$probe" && continue ;;
    esac
    echo "missing: $name ($what $probe)" >&2
    found=1
  done <<'LIST'
command|cmake|CMake 3.25 or later
command|ninja|Ninja
command|ccache|ccache
command|mold|mold, a linker
command|c++|a C++20 compiler
command|git|git
command|python3|Python 3
command|clang++-22|clang 22
header|lld/Common/Driver.h|lld 22, as a library
header|mlir/IR/MLIRContext.h|MLIR 22 and LLVM 22, with headers
header|sqlite3.h|SQLite, with headers
header|CLI/CLI.hpp|CLI11
header|tl/expected.hpp|tl-expected
header|fmt/core.h|fmt
header|nlohmann/json.hpp|nlohmann-json
header|zlib.h|zlib, with headers
LIST
  if [[ $found -ne 0 ]]; then
    echo 'there is no apt here: install these by your package manager (cmake/packages.txt has the names of Debian 12)' >&2
    echo 'a GPU node without LLVM needs the C++ compiler and the libraries alone: cmake --preset runtime-only' >&2
  fi
  return $found
}
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  name_missing
  exit
fi
missing=()
optional=()
browser=''
while read -r package; do
  [[ "${1:-}" == --without-tests && "$package" == '# Tests and benchmarks'* ]] && break
  [[ -z "$package" || "$package" == \#* ]] && continue
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed && continue
  if [[ "$package" == libjemalloc-dev ]]; then optional+=("$package"); continue; fi
  if [[ "$package" == chromium && -z "${MGPU_REQUIRE_BROWSER:-}" ]]; then browser="$package"; else missing+=("$package"); fi
done < "$here/packages.txt"
[[ -z "$browser" ]] || echo "not installed: chromium, which the test of the report uses if it is there" >&2
# Programs are read without it, too, in a third more time.
install_optional() {
  [[ ${#optional[@]} -eq 0 ]] && return
  [[ $(id -u) -eq 0 ]] && { apt-get update -qq; apt-get install -y -qq --no-install-recommends "${optional[@]}"; } &> /dev/null && return
  echo "not installed: ${optional[*]}, without which programs are read more slowly" >&2
}
export DEBIAN_FRONTEND=noninteractive
[[ ${#missing[@]} -eq 0 ]] && { install_optional; exit 0; }
if [[ $(id -u) -ne 0 ]]; then
  echo "run as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
log=$(mktemp -t mgpu-packages.XXXXXX)
echo "installing ${#missing[@]} packages, some minutes (what apt says is in $log): ${missing[*]}" >&2
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } > "$log" 2>&1; then
  tail -n 30 "$log" >&2
  exit 1
fi
install_optional
