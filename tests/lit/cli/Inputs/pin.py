# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at `run --pin` from outside: where the system says its threads may run, and what it says where it may not."""
import ctypes
import json
import os
import platform
import subprocess
import sys
import time


def allowed(pid):
    """The CPUs of each thread of a process; of the calling one first."""
    out = {}
    for thread in sorted(map(int, os.listdir(f"/proc/{pid}/task"))):
        out[thread] = sorted(os.sched_getaffinity(thread))
    return out


def watch(command, threads):
    """Runs a command that replays for long, and ends it when as many threads as are meant are pinned."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    pinned = []
    while len(pinned) < threads and child.poll() is None and time.monotonic() < until:
        try:
            pinned = [cpus for cpus in allowed(child.pid).values() if len(cpus) == 1]
        except OSError:
            pass  # a thread has ended in between
        time.sleep(0.01)
    child.kill()
    child.wait()
    return pinned


def refuse():
    """From here on sched_setaffinity is refused, as containers may."""
    number = {"x86_64": 203, "aarch64": 122}[platform.machine()]

    class Step(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32)]

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]

    steps = (Step * 4)(Step(0x20, 0, 0, 0), Step(0x15, 0, 1, number), Step(0x06, 0, 0, 0x00050001),
                       Step(0x06, 0, 0, 0x7FFF0000))  # EPERM, else allowed
    libc = ctypes.CDLL(None, use_errno=True)
    kept = Filter(4, steps)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(kept), 0, 0) != 0:
        os._exit(99)


def main():
    what, command = sys.argv[1], sys.argv[2:]
    cpus = sorted(os.sched_getaffinity(0))
    if what != "refused":
        command += ["--threads", str(min(2, len(cpus)))]
    if what == "threads":
        threads = min(2, len(cpus))
        pinned = watch(command + ["--repeat", "1000000000"], threads)
        assert len({cpu for each in pinned for cpu in each}) == threads, pinned
        print("each thread has a CPU of its own")
    elif what == "said":
        out = json.loads(subprocess.run(command + ["--json"], check=True, stdout=subprocess.PIPE).stdout)
        said = [int(cpu) for cpu in out["pinned_cpus"].split(",")]
        assert len(said) == min(2, len(cpus)) == len(set(said)) and set(said) <= set(cpus), said
        print("says its CPUs")
    elif what == "refused":
        sys.exit(subprocess.run(command, preexec_fn=refuse).returncode)


main()
