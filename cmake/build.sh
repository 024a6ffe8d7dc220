#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds targets of a preset's build folder and shows how far it is: on a terminal one line that counts, elsewhere a
# line at each tenth. All that the compilers print goes to a log, whose end is shown where the build fails.
# Usage: build.sh FOLDER JOBS TARGET...
set -euo pipefail
folder=${1:?usage: build.sh FOLDER JOBS TARGET...}
jobs=$2
shift 2
log=$folder.build.log
show=lines
[[ -t 1 ]] && show=counter
if ! cmake --build "$folder" -j "$jobs" --target "$@" 2>&1 | tee "$log" | awk -v show="$show" '
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), of, "/")
      if (show == "counter") printf "\r  %d of %d steps", of[1], of[2]
      else if (int(10 * of[1] / of[2]) > tenth) { tenth = int(10 * of[1] / of[2]); printf "  %d of %d steps\n", of[1], of[2] }
      fflush()
    }
    END { if (show == "counter") print "" }'; then
  tail -n 40 "$log" >&2
  echo "the build failed: all of it is in $log" >&2
  exit 1
fi
