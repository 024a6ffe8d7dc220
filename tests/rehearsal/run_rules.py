#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests/gpu's scripts make of steps, results and machines that a rehearsal does not have.

Usage: run_rules.py
"""

import contextlib
import io
import json
import math
import os
import stat
import struct
import sys
import tarfile
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import examples  # noqa: E402
import large  # noqa: E402
import read_results  # noqa: E402
import run  # noqa: E402


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def npy(*values):
    head = str({"descr": "<f4", "fortran_order": False, "shape": (len(values),)})
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode().ljust(118)
            + struct.pack(f"<{len(values)}f", *values))


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.run = run.Run(self.folder, self.folder, self.folder)
        self.run.path = f"{self.folder}/gpu.json"
        self.limits = dict(run.LIMITS)
        self.addCleanup(lambda: (run.LIMITS.clear(), run.LIMITS.update(self.limits)))

    def step(self, text, name="examples", **how):
        with contextlib.redirect_stdout(io.StringIO()):
            return self.run.step(name, ["sh", "-c", text], **how)

    def limit(self, seconds):
        run.LIMITS.clear()
        run.LIMITS["examples"] = seconds

    def test_all_limits_fit(self):
        self.assertLessEqual(sum(run.LIMITS.values()), run.BUDGET)
        self.assertLessEqual(run.BUDGET, 410)
        self.assertTrue(all(seconds >= run.LEAST for seconds in run.LIMITS.values()))
        last = [name for name in run.LIMITS if "check" in name]
        self.assertEqual(list(run.LIMITS)[-4:], last, "sanitizers are last")

    def test_a_step_has_what_others_left(self):
        before = sum(run.LIMITS[name] for name in ("doctor", "examples", "profile")) * self.run.scale
        self.assertAlmostEqual(self.run.left("profile"), before, delta=5)

    def test_named_steps_share_the_time(self):
        some = run.Run(self.folder, self.folder, self.folder, ["large", "gpu-ranks", "first replay"], 100)
        self.assertTrue(all(some.wants(name) for name in ("doctor", "large", "gpu-ranks 2 one", "first replay")))
        self.assertFalse(some.wants("replays") or some.wants("examples"))
        self.assertAlmostEqual(some.left("gpu-ranks 2 die"), 100, delta=5)
        self.assertGreater(some.left("large"), run.LIMITS["large"] / 2)
        self.assertIsNone(some.step("examples", ["false"]))
        self.assertEqual(some.result["steps"], [])

    def test_the_last_step_is_written_where_all_are_slow(self):
        """Programs that never end, and little time: what there is of time is kept to, and each step has a line."""
        doctor = {"gpus": [{"name": "Slow GPU", "arch": "sm_90"}], "nvrtc": {"version": "13"}, "nccl": {}, "cublaslt": {}}
        for name in ("gpu-test", "gpu-ranks", "gpu-replays", "bench-cuda"):
            script(self.folder, name, "exec sleep 100")
        script(self.folder, "mgpu-tune", f"[ $1 = doctor ] && echo '{json.dumps(doctor)}' && exit\nexec sleep 100")
        slow = run.Run(self.folder, self.folder, f"{self.folder}/out", budget=6)
        began = time.monotonic()
        kept, run.LEAST = run.LEAST, 0.2
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                slow.all()
        finally:
            run.LEAST = kept
        # A step that is not ended sleeps for 100 seconds.
        self.assertLess(time.monotonic() - began, 90)
        path = next(each for each in os.listdir(f"{self.folder}/out") if each.endswith(".json"))
        with open(f"{self.folder}/out/{path}", encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual([step["step"] for step in result["steps"]], list(run.LIMITS))
        statuses = [step["status"] for step in result["steps"]]
        # Where the machine has other work to do, the time may be over before a second step begins.
        self.assertEqual(statuses[0], "passed")
        self.assertIn(statuses[1], ("timed_out", "not_run"))
        self.assertIn(statuses[-1], ("not_run", "skipped"))
        self.assertFalse(result["complete"])

    def test_what_ends_badly_failed(self):
        self.assertEqual(self.step("true")["status"], "passed")
        self.assertTrue(self.run.result["passed"])
        line = self.step("echo why; exit 4")
        self.assertEqual((line["status"], line["exit_code"], line["log"]), ("failed", 4, "why\n"))
        self.assertFalse(self.run.result["passed"])
        self.assertTrue(self.run.result["complete"])

    def test_out_of_time_is_no_failure(self):
        self.limit(run.LEAST + 1)
        line = self.step("echo '{\"ok\": true}'; echo '{\"ok\"'; sleep 60", read=self.run.lines("examples"))
        self.assertEqual(line["status"], "timed_out")
        self.assertEqual(self.run.result["examples"], [{"ok": True}])
        self.assertTrue(self.run.result["passed"])
        self.assertFalse(self.run.result["complete"])

    def test_what_cannot_be_killed_is_left(self):
        self.limit(run.LEAST + 1)
        line = self.step("echo said; setsid sleep 30 & sleep 60")
        self.assertEqual((line["status"], line["log"]), ("timed_out", "said\n"))
        self.assertLess(line["seconds"], run.LEAST + 1 + run.GRACE + 3)

    def test_out_of_time_after_a_failure_is_one(self):
        self.limit(run.LEAST + 1)
        text = "echo '{\"example\": \"mlp\", \"target\": \"cuda:0\", \"ok\": false}'; sleep 60"
        line = self.step(text, read=self.run.lines("examples"))
        self.assertEqual((line["status"], line["timed_out"], line["failed"]), ("failed", True, ["mlp cuda:0"]))
        self.assertFalse(self.run.result["passed"])

    def test_what_cannot_begin_is_not_run(self):
        self.limit(run.LEAST - 1)
        self.assertEqual(self.step("echo no > ran")["status"], "not_run")
        self.assertFalse(self.run.result["complete"])
        self.assertTrue(self.run.result["passed"])

    def test_a_sanitizer_without_the_gpu_is_skipped(self):
        said = "========= Error: Device not supported. Please refer to"
        line = self.step(f"echo '{said}'; exit 1", no_tool=run.NO_TOOL, read=self.run.count)
        self.assertEqual((line["status"], line["skipped"]), ("skipped", said))
        self.assertEqual(self.step("echo other; exit 1", no_tool=run.NO_TOOL)["status"], "failed")
        self.assertEqual(self.step("echo none >&2; exit 77", skips=(77,))["skipped"], "none")

    def test_examples_end_where_a_sanitizer_does_not_work(self):
        tune = script(self.folder, "mgpu-tune", "echo 'ok: 1 device, 3 nodes'; echo '  argument x: 4xf32 (input)'\n")
        tool = script(self.folder, "tool", "echo 'Error: Device not supported'; exit 1\n")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(examples.run_under(tool, tune, self.folder), 77)

    def test_failed_tests_are_named(self):
        document = {"tests": 2, "failures": 1, "errors": 0, "testsuites": [
            {"name": "A", "tests": 2, "testsuite": [{"name": "b", "failures": [{}]},
                                                    {"name": "c", "disagrees": "x is 0"}]}]}
        script(self.folder, "gpu-test", f"""for word in "$@"; do case $word in --gtest_output=json:*)
            echo '{json.dumps(document)}' > "${{word#*json:}}"; exit 1;; esac; done
            echo 'Running 1 test from 1'; echo '[  FAILED  ] LostContexts.AFaultIsSaid (3 ms)'; exit 1""")
        with contextlib.redirect_stdout(io.StringIO()):
            self.run.tests()
        with open(self.run.path, encoding="utf-8") as file:
            whole, lost, _ = json.load(file)["steps"]
        self.assertEqual((whole["failed"], whole["disagreements"]), (["A.b"], {"A.c": "x is 0"}))
        self.assertEqual((whole["status"], lost["failed"]), ("failed", ["LostContexts.AFaultIsSaid"]))

    def test_all_logs_are_in_one_archive(self):
        self.step("echo first")
        self.step("yes | head -c 50000; exit 1")
        with tarfile.open(f"{self.folder}/gpu-logs.tar.gz") as archive:
            self.assertEqual(archive.getnames(), ["01.log", "02.log"])
            self.assertGreater(archive.getmember("02.log").size, 50000)
        self.assertEqual(len(self.run.result["steps"][1]["log"]), run.LOG_BYTES)
        self.assertEqual(sorted(os.listdir(self.folder)), ["gpu-logs.tar.gz", "gpu.json"])


class Machines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.saved = dict(os.environ), list(sys.path)
        self.addCleanup(self.restore)
        for name in ("CUDA_HOME", "CUDA_PATH"):
            os.environ[name] = "/nowhere"
        sys.path.append(self.folder)

    def restore(self):
        os.environ.clear()
        os.environ.update(self.saved[0])
        sys.path[:] = self.saved[1]

    def package(self, name, folder="some"):
        place = f"{self.folder}/nvidia/{folder}/lib"
        os.makedirs(place, exist_ok=True)
        with open(f"{place}/{name}", "w", encoding="utf-8"):
            return place

    def found(self, *listed):
        lines = "".join(f"\\t{name} (libc6,x86-64) => /lib/{name}\\n" for name in listed)
        script(self.folder, "ldconfig", f"printf '{lines}'")
        os.environ["PATH"] = f"{self.folder}:{self.saved[0]['PATH']}"
        environment = {}
        kept, run.LIBRARIES = run.LIBRARIES, [("libmgpuno.so.13", "libmgpuno.so.12")]
        try:
            run.add_python_packages(environment)
        finally:
            run.LIBRARIES = kept
        return environment.get("LD_LIBRARY_PATH")

    def test_another_version_is_not_the_library(self):
        place = self.package("libmgpuno.so.13")
        self.assertEqual(self.found("libmgpuno.so.11"), place)
        self.assertEqual(self.found("libmgpuno.so.12"), place, "the packages have the one preferred")
        self.assertIsNone(self.found("libmgpuno.so.13"))

    def test_the_older_one_will_do(self):
        place = self.package("libmgpuno.so.12")
        self.assertEqual(self.found(), place)
        self.assertIsNone(self.found("libmgpuno.so.12"))


class Results(unittest.TestCase):
    def test_a_second_run_takes_the_place_of_what_it_repeats(self):
        steps = lambda **status: [{"step": name, "status": each} for name, each in status.items()]
        first = {"steps": steps(large="failed", decode="passed"), "complete": True, "seconds": 300, "date": "1",
                 "large": [{"case": "sum", "ok": True}, {"case": "sort", "ok": False}], "targets": []}
        again = {"steps": steps(large="passed", tune="not_run"), "complete": True, "seconds": 20, "passed": True,
                 "large": [{"case": "sort", "ok": True, "us": 3}], "targets": []}
        both = read_results.merged(first, again)
        self.assertEqual(both["large"], [{"case": "sum", "ok": True}, {"case": "sort", "ok": True, "us": 3}])
        self.assertEqual({step["step"]: step["status"] for step in both["steps"]}, {"large": "passed", "decode": "passed"})
        self.assertEqual((both["passed"], both["seconds"]), (True, 320))

    def test_tables_of_what_went_wrong(self):
        result = {"doctor": {"gpus": [{"name": "A GPU"}]}, "date": "1", "seconds": 1, "complete": False, "steps": [
            {"step": "gpu-test", "status": "failed", "failed": ["A.B"], "log": "why", "disagreements": {"R.S": "no"}}],
            "large": [{"case": "sum", "ok": False, "error": "exit | code"}, {"case": "sort", "ok": True, "us": 2.0, "bytes": 4}]}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            read_results.report(result)
        for each in ("`gpu-test`: failed; A.B", "`R.S`: no", "| sum | exit / code | - |", "| sort | right | 2 |"):
            self.assertIn(each, said.getvalue())

    def test_sums_of_products_are_exact(self):
        """No sum of whole numbers reaches 2^24, in whatever order it is added up."""
        for name, case in large.CASES.items():
            arrays, _ = case.make(*case.sizes)
            if name.startswith(("product", "decode")):
                depth = case.sizes[1 if name.startswith("decode") else 2]
                self.assertLess(arrays[0].ints * arrays[1].ints * depth, 1 << 24, name)

    def test_one_device_is_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            for said, number in (("1 device", 1), ("4 devices", 4)):
                tune = script(folder, "mgpu-tune", f"echo 'x: ok: {said}, 3 nodes'; echo '  argument x: 4xf32 (input)'\n")
                self.assertEqual(examples.signature(tune, ["x"]), (number, ["x"], ["x"]))

    def test_bits_where_nothing_is_allowed(self):
        one, other = {"y": npy(1, 2)}, {"y": npy(1, math.nextafter(2, 3) + 2e-7)}
        self.assertEqual(examples.judge(("mlp", "main"), "cuda:0/4", 4, one, one), {"compared": "bits", "ok": True})
        self.assertEqual(examples.judge(("mlp", "main"), "cuda:0/4", 4, other, one),
                         {"compared": "bits", "ok": False, "differ": ["y"]})
        line = examples.judge(("attention", "main"), "cuda:0", 1, other, one)
        self.assertTrue(line["ok"] and not line["host_bits"] and 0 < line["furthest"] < 2e-7)

    def test_close_is_not_anything(self):
        wanted = {"y": npy(1, 2, -4), "k": b"integers"}
        for got in ({**wanted, "y": npy(1, 2, -4.001)}, {**wanted, "y": npy(1, 2, math.nan)},
                    {**wanted, "y": npy(1, 2)}, {**wanted, "k": b"integer!"}):
            line = examples.judge(("attention", "main"), "cuda:0", 1, got, wanted)
            self.assertFalse(line["ok"], line)
            json.dumps(line, allow_nan=False)

    def test_what_is_close_calls_such_a_function(self):
        """CLOSE has just the programs with a function that a GPU may round otherwise."""
        source = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples")
        exact = {"sqrt", "fma", "absf", "absi", "copysign", "floor", "ceil", "trunc", "round", "roundeven"}
        for name, entry, _ in examples.EXAMPLES:
            with open(f"{source}/{name}/{name}.mlir", encoding="utf-8") as file:
                bodies = file.read().split("func.func ")
            body = next(each for each in bodies if each.startswith(f"@{entry}("))
            code = "\n".join(line.partition("//")[0] for line in body.splitlines())
            called = {word.split()[0] for word in code.split("math.")[1:]} - exact
            called |= {"softmax"} if "linalg.softmax" in code else set()
            self.assertEqual(bool(called), (name, entry) in examples.CLOSE, (name, entry, called))


if __name__ == "__main__":
    unittest.main()
