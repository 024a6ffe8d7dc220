# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mgpu-tune, which compiles what the library replays."""

import os
import shutil
import subprocess
from typing import List, Optional, Sequence

from mgpu import _library


def find(name: str = "mgpu-tune") -> str:
    """MGPU_TUNE, else the one beside the library, else the one in PATH; other programs lie beside it."""
    beside = os.path.join(os.path.dirname(_library.find()), "..", "bin", "mgpu-tune")
    tune = os.environ.get("MGPU_TUNE") or (beside if os.path.exists(beside) else shutil.which("mgpu-tune"))
    path = tune if name == "mgpu-tune" or not tune else os.path.join(os.path.dirname(tune), name)
    if not path or not os.path.exists(path):
        raise _library.AbsentError(f"{name} is not here: name mgpu-tune in MGPU_TUNE")
    return path


def run(words: Sequence[str]) -> str:
    """What mgpu-tune prints; its error is raised as the library's would be."""
    done = subprocess.run([find(), *words], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error: " in line]  # the last one may say that some are above
        message = errors[0].removeprefix("mgpu-tune: error: ") if errors else done.stderr.strip()[-2000:]
        raise _library.error_of(done.returncode, message)
    return done.stdout


def host_level(target: str, cpu: Optional[str] = None) -> List[str]:
    """--cpu of a level, else of the highest that this processor has, of those a bundle has kernels for; for one that runs here."""
    if not target.startswith("host"):
        return []
    if cpu:
        return ["--cpu", cpu]
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return ["--cpu", "x86-64-v4" if "avx512vl" in flags else "x86-64-v3" if "avx2" in flags else "x86-64-v2"]
