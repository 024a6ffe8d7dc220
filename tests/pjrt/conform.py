#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the conformance checks and the tests of pedronahum/pypjrt, a client in Python, with the plugin. MGPU_PYPJRT is a
checkout of it; without it the test is skipped.

Usage: conform.py PLUGIN.so
"""

import json
import os
import re
import subprocess
import sys
import tempfile

# What is not there, with the reason; docs/limits.md has these rows.
NOT_PASSED = {
    "abi.unknown_slot_is_clean_error": "the plugin has every slot",
    "triton.compile": "no Triton", "stream.external_ready_events": "the host has no streams",
    "abi_version.extension_present": "no extension AbiVersion", "abi_version.executable_proto": "the same",
    "abi_version.is_compatible_with_executable": "the same",
    "compile.optimized_program": "a plan is no HLO", "topology.create_by_name": "names of TPUs are not known",
}
# Tests that need XLA's FFI, by file or name.
NEED_FFI = ["test_m6_ffi.py", "test_extension_probe_never_raises"]


def main():
    folder = os.environ.get("MGPU_PYPJRT")
    if not folder:
        print("skipped: MGPU_PYPJRT names no checkout")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as own:
        # The client takes a library with "gpu" in its name for one of GPUs.
        plugin, report = os.path.join(own, "pjrt_cpu_plugin.so"), os.path.join(own, "report.json")
        os.symlink(os.path.abspath(sys.argv[1]), plugin)
        env = {**os.environ, "PYTHONPATH": os.path.join(folder, "src"), "PYPJRT_CPU_PLUGIN": plugin, "MGPU_PJRT_CACHE": "off",
               "MGPU_PJRT_TARGET": "host:4", "MGPU_PJRT_PLATFORM": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([sys.executable, "-m", "pypjrt.conform", plugin, "--json", report], env=env, check=True, stdout=subprocess.DEVNULL)
        with open(report, encoding="utf-8") as file:
            checks = {check["id"]: check["result"] for check in json.load(file)["checks"]}
        failed = {name: result for name, result in checks.items() if result != "pass" and name not in NOT_PASSED}
        assert not failed and len(checks) >= 63, failed
        print(f"{sum(result == 'pass' for result in checks.values())} of {len(checks)} checks pass")
        tests = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tier1_cpu"], cwd=folder, env=env,
                               capture_output=True, text=True, check=False).stdout
    wrong = [line for line in tests.splitlines() if re.match(r"(FAILED|ERROR) ", line) and not any(need in line for need in NEED_FFI)]
    passed = re.search(r"(\d+) passed", tests)
    assert passed and not wrong, "\n".join(wrong) or tests[-2000:]
    print(tests.splitlines()[-1])
    assert int(passed.group(1)) >= 88, "fewer tests than before"


if __name__ == "__main__":
    main()
