#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Everything that needs a GPU, from binaries built elsewhere (pack.sh), in under 7 minutes.
# Usage: run.sh BIN_DIR BUNDLE_DIR [RESULT_DIR] [--only STEP,...] [--budget SECONDS]
#   BIN_DIR     holds gpu-test, gpu-ranks, gpu-replays, bench-cuda and mgpu-tune of the preset
#               runtime-static, or of any other
#   BUNDLE_DIR  what `examples.py --bundle MGPU_TUNE examples BUNDLE_DIR` wrote with a whole mgpu-tune
#   --only      steps by their names, which share the time there is (run.py has the names)
#   RESULT_DIR  where <gpu>-<date>.json is written; default bench/results
# PYTHON in the environment is the interpreter; some steps need its NumPy, PyTorch and JAX.
# Fails (1) if a test does, 3 without a GPU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONDONTWRITEBYTECODE=1
exec "${PYTHON:-python3}" "$here/run.py" "$@"
