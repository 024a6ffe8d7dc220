# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mgpu-tune, which compiles what the library replays."""

import os
import shutil
import subprocess
import sys
from typing import List, Optional, Sequence

from mgpu import _library


def find() -> str:
    """MGPU_TUNE, else the one of the wheel or the prefix that the library is in, else the one in PATH."""
    library = os.path.dirname(_library.find())
    beside = [os.path.join(library, *folder, "mgpu-tune") for folder in (["bin"], ["..", "bin"], ["..", "..", "bin"])]
    path = os.environ.get("MGPU_TUNE") or next(filter(os.path.exists, beside), None) or shutil.which("mgpu-tune")
    script = os.path.realpath(sys.argv[0])  # of a wheel, which comes here
    if not path or not os.path.exists(path) or os.path.realpath(path) == script:
        raise _library.AbsentError("mgpu-tune is not here: name it in MGPU_TUNE")
    return path


def become(words: Sequence[str], name: str = "mgpu-tune") -> None:
    """This process goes on as mgpu-tune, or under another of its names."""
    try:
        os.execv(find(), [name, *words])
    except (_library.AbsentError, OSError) as error:
        print(f"mgpu: error: {error}", file=sys.stderr)
        sys.exit(_library.AbsentError.status)


def main() -> None:
    """The command mgpu-tune of a wheel."""
    become(sys.argv[1:])


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
