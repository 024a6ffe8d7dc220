#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What run.sh does: every step with a limit of its own, all of them within one.

The result is written anew after each step, so that a run which is cut off leaves what it
has. bench/results/README.md says what is in it.
"""

import ctypes.util
import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RESULTS = os.path.join(ROOT, "bench", "results")
# Seconds for everything. No step begins with less than LEAST left.
BUDGET, LEAST = 465, 5
# What the driver of the rehearsal calls its card (tests/rehearsal).
DOUBLE = "test double"
# These lose the context of the process they run in.
LOST = ["LostContexts.AFaultIsSaid", "LostContexts.OneThatDoesNotEndIsGivenUp"]
LIBRARIES = ["libnvrtc.so.13", "libnccl.so.2", "libcublasLt.so.13", "libcupti.so.13"]


def add_python_packages(environment):
    """Libraries that are only in a Python's packages, as NCCL often is, for the loader."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    kept = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    folders = kept + [f"{home}/{inside}" for home in homes if home
                      for inside in ("lib64", "extras/CUPTI/lib64")]
    for name in LIBRARIES:
        stem = re.match(r"lib(\w+)\.so", name).group(1)
        if any(os.path.exists(f"{folder}/{name}") for folder in folders) or \
                ctypes.util.find_library(stem):
            continue
        for place in sys.path:
            found = glob.glob(f"{place}/nvidia/*/lib/{name}")
            if found and os.path.dirname(found[0]) not in kept:
                kept.append(os.path.dirname(found[0]))
    if kept:
        environment["LD_LIBRARY_PATH"] = ":".join(kept)


class Run:
    def __init__(self, binaries, bundles, results):
        self.bin, self.bundles, self.results = binaries, bundles, results
        self.work = tempfile.mkdtemp(prefix="mgpu-gpu-")
        self.started = time.monotonic()
        self.slack = 1
        self.environment = {**os.environ, "MGPU_REQUIRE_GPU": "1",
                            "MGPU_DB": f"{self.work}/t.db"}
        add_python_packages(self.environment)
        self.result = {"passed": True, "complete": True, "seconds": 0, "steps": []}
        self.path = None

    def left(self):
        return BUDGET * self.slack - (time.monotonic() - self.started)

    def call(self, limit, command, given=None):
        """The exit code (124: it did not end in time), and the two streams."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE if given else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment, start_new_session=True)
        try:
            out, error = process.communicate(given, timeout=max(min(limit * self.slack, self.left()), 1))
            return process.returncode, out, error
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, error = process.communicate()
            return 124, out, error

    def step(self, name, limit, command, skips=(), read=None):
        """Runs one step. `read` makes of its output what the result keeps."""
        if self.left() < LEAST:
            return self.note({"step": name, "ok": None, "left_out": "no time was left"}, "")
        start = time.monotonic()
        code, out, error = self.call(limit, command)
        line = {"step": name, "ok": code == 0, "seconds": round(time.monotonic() - start, 1)}
        if code in skips:
            line.update(ok=None, skipped=(error.strip().splitlines() or ["it says not why"])[-1])
        elif code == 124:
            line["timed_out"] = True
        elif code != 0:
            line["exit_code"] = code
        if read:
            try:
                read(out, line)
            except (ValueError, KeyError, OSError, TypeError, AttributeError) as problem:
                line.update(ok=False, unreadable=repr(problem))
        return self.note(line, out + error)

    def note(self, line, log):
        self.result["steps"].append(line)
        if line["ok"] is False:
            self.result["passed"] = False
        if "left_out" in line or line.get("timed_out"):
            self.result["complete"] = False
        with open(f"{self.work}/{len(self.result['steps']):02}.log", "w", encoding="utf-8") as file:
            file.write(f"{line}\n{log}")
        print(json.dumps(line), flush=True)
        if line["ok"] is False:
            print("\n".join(log.splitlines()[-15:])[-2500:], flush=True)
        self.write()
        return line

    def write(self):
        self.result["seconds"] = round(time.monotonic() - self.started, 1)
        if not self.path:
            return
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
            file.write("\n")
        os.replace(self.path + ".new", self.path)

    def find_card(self):
        """Names the result after the card; exits with 3 without one."""
        code, out, error = self.call(30, [f"{self.bin}/mgpu-tune", "doctor", "--json"])
        try:
            doctor = json.loads(out)
            name = doctor["cards"][0]["name"]
        except (ValueError, KeyError, IndexError, TypeError):
            print(f"no card (doctor: exit code {code}): {error.strip()}", file=sys.stderr)
            sys.exit(3)
        self.result["doctor"] = doctor
        self.result["date"] = str(datetime.date.today())
        self.is_double = DOUBLE in name
        if self.is_double:
            # Of the limits only that they work is of interest, on any machine.
            self.slack = 6
            self.result["rehearsal"] = "no card: a test double; no figure here means anything"
            if os.path.realpath(self.results) == os.path.realpath(RESULTS):
                sys.exit(f"'{name}' is no card: its results do not go to {RESULTS}; name another folder")
        gpu = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        os.makedirs(self.results, exist_ok=True)
        self.path = f"{self.results}/{gpu}-{self.result['date']}.json"
        self.write()

    def lines(self, key):
        """A reader that keeps each line of JSON under `key`."""
        def read(out, line):
            found = [json.loads(each) for each in out.splitlines() if each.startswith("{")]
            self.result.setdefault(key, []).extend(found)
            if not found:
                raise ValueError("it printed no result")
            if any(each.get("complete") is False for each in found):
                self.result["complete"] = False
                line["incomplete"] = sum(each.get("complete") is False for each in found)
        return read

    def tests(self):
        path = f"{self.work}/gpu-test.json"

        def read(_, line):
            with open(path, encoding="utf-8") as file:
                full = json.load(file)
            line.update({key: full[key] for key in ("tests", "failures", "errors")})
            line["names"] = {suite["name"]: suite["tests"] for suite in full["testsuites"]}
            if full["tests"] == 0:
                raise ValueError("no test ran")

        test = [f"{self.bin}/gpu-test", "--gtest_brief=1"]
        self.step("gpu-test", 150, [*test, f"--gtest_output=json:{path}",
                                    "--gtest_filter=-" + ":".join(LOST)], read=read)
        for name in LOST:
            self.step(name, 30, [*test, f"--gtest_filter={name}"])

    def ranks(self):
        for ranks in ("1", "2", "4", "2 one", "4 one", "2 die"):
            # 77: the cards are too few, or NCCL is too old.
            self.step(f"gpu-ranks {ranks}", 45, [f"{self.bin}/gpu-ranks", *ranks.split()], skips=(77,))

    def first_replays(self):
        self.step("first replay", 40, [sys.executable, f"{HERE}/first_replay.py",
                                       f"{self.bin}/mgpu-tune", self.bundles],
                  read=self.lines("first_replay"))

    def sanitizers(self):
        def count(out, line):
            # A filter that matches nothing is no failure to gtest.
            line["tests"] = int(re.search(r"(\d+) tests? from", out).group(1))
            if line["tests"] == 0:
                raise ValueError("no test ran")

        found = shutil.which("compute-sanitizer",
                             path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
        for tool in ("memcheck", "racecheck"):
            if not found:
                self.note({"step": tool, "ok": None, "skipped": "no compute-sanitizer"}, "")
                continue
            command = [found, "--tool", tool, "--error-exitcode", "1"]
            self.step(f"{tool} examples", 75, [
                sys.executable, f"{HERE}/examples.py", "--under", " ".join(command),
                f"{self.bin}/mgpu-tune", self.bundles], read=self.lines("sanitizer"))
            self.step(f"{tool} gpu-test", 40, [
                *command, f"{self.bin}/gpu-test", "--gtest_brief=1",
                "--gtest_filter=Collectives.*:Replays.CoverTheWholeGrid"], read=count)

    def benchmarks(self):
        less = ["--seconds", "0", "--rounds", "6", "--nodes", "64"] if self.is_double else []
        self.step("bench-cuda", 110, [
            f"{self.bin}/bench-cuda", *less, "--bandwidth", f"{self.bundles}/elementwise.mgpu",
            "--bandwidth-seconds", "3" if self.is_double else "25"], read=self.lines("bench"))

    def judge(self):
        """The project's targets, beside the worst of what was measured. No step fails by them."""
        lines = self.result.get("bench", [])

        def judged(what, worst, is_met):
            self.result.setdefault("targets", []).append(
                {"target": what, "worst": worst,
                 "met": None if worst is None or self.is_double else is_met(worst)})

        launches = [each["difference_cpu_us"][0] for each in lines if each["part"] == "launch"]
        judged("a replay call costs at most a bare launch and 0.5 us of processor time",
               max(launches, default=None), lambda us: us <= 0.5)
        shares = [each["best"]["share"] for each in lines if each["part"] == "bandwidth"]
        judged("elementwise kernels reach 0.92 of the copy within the card", min(shares, default=None),
               lambda share: share >= 0.92)
        spans = [each["over_one_stream"] for each in lines if each["part"] == "span"]
        judged("the card takes no longer for a replay than for launches into a stream",
               max(spans, default=None), lambda ratio: ratio <= 1)
        torch = [each["span_over_torch"] for each in self.result.get("torch", [])]
        judged("nor than for torch.cuda.CUDAGraph", max(torch, default=None), lambda ratio: ratio <= 1)

    def torch(self):
        # 77: there is no PyTorch that sees the card.
        less = ["64"] if self.is_double else []
        self.step("torch", 45, [sys.executable, f"{HERE}/torch_graphs.py", f"{self.bin}/bench-cuda", *less],
                  skips=(77,), read=self.lines("torch"))

    def replays(self):
        count, seconds = (120, 200) if self.is_double else (10000, 15)
        self.step("replays", 130, [sys.executable, f"{HERE}/examples.py", "--replays", str(count),
                                   str(seconds), f"{self.bin}/gpu-replays", f"{self.bin}/mgpu-tune",
                                   self.bundles], read=self.lines("replays"))

    def tune(self):
        def read(out, _):
            self.result["tune"] = json.loads(out)

        budget = "6s" if self.is_double else "20s"
        self.step("tune", 60, [f"{self.bin}/mgpu-tune", "tune", f"{self.bundles}/mlp-main.mgpu",
                               "--target", "cuda:0/4", "--budget", budget, "--json"], read=read)

    def profile(self):
        def read(out, _):
            profile = json.loads(out)
            self.result["profile"] = {key: profile.get(key) for key in
                                      ("timed_by", "device_span_us", "overlap_percent", "nodes")}

        self.step("profile", 30, [f"{self.bin}/mgpu-tune", "profile", f"{self.bundles}/digits-eval.mgpu",
                                  "--target", "cuda:0/4", "--repeat", "20", "--json"], read=read)
        if self.is_double:
            self.note({"step": "calibrate", "ok": None,
                       "skipped": "its kernels take minutes on a processor"}, "")
            return
        node = f"{self.work}/node.json"

        def keep(_out, _line):
            with open(node, encoding="utf-8") as file:
                self.result["calibration"] = json.load(file)

        self.step("calibrate", 40, [f"{self.bin}/mgpu-tune", "calibrate",
                                    f"{self.bundles}/calibrate.mgpu", "--target", "cuda:0/4",
                                    "-o", node], read=keep)

    def all(self):
        self.find_card()
        self.step("doctor", 30, [f"{self.bin}/mgpu-tune", "doctor"])
        self.tests()
        self.step("examples", 90, [sys.executable, f"{HERE}/examples.py", f"{self.bin}/mgpu-tune",
                                   self.bundles, "2"], read=self.lines("examples"))
        self.replays()
        self.benchmarks()
        self.first_replays()
        self.torch()
        self.ranks()
        self.sanitizers()
        self.profile()
        self.tune()
        self.judge()
        self.write()
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        for line in self.result["steps"]:
            counts[{True: "passed", False: "failed", None: "skipped"}[line["ok"]]] += 1
        for target in self.result["targets"]:
            print(json.dumps(target))
        print(f"{counts}, {self.result['seconds']} s, complete: {self.result['complete']}")
        print(self.path)
        print(f"logs: {self.work}")
        return 0 if self.result["passed"] else 1


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: run.sh BIN_DIR BUNDLE_DIR [RESULT_DIR]")
    binaries, bundles = (os.path.abspath(each) for each in sys.argv[1:3])
    sys.exit(Run(binaries, bundles, os.path.abspath((sys.argv[3:] or [RESULTS])[0])).all())


if __name__ == "__main__":
    main()
