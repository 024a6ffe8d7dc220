#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What run.sh does: every step with a limit of its own, all of them within one.

The result, and beside it the logs of all steps, are written anew after each step, so that a
run which is cut off leaves what it has. bench/results/README.md says what is in it.
"""

import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

from examples import NO_TOOL

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RESULTS = os.path.join(ROOT, "bench", "results")
# Seconds for each step, in their order: what is quick to know first, then what says most. A step
# has what those before it left over, too, but never less than this.
LIMITS = {"doctor": 15, "examples": 80, "profile": 10, "gpu-ranks 1": 15, "gpu-test": 45,
          "LostContexts.AFaultIsSaid": 10, "LostContexts.OneThatDoesNotEndIsGivenUp": 10,
          "replays": 70, "bench-cuda": 50, "first replay": 25, "torch": 20, "tune": 25,
          "calibrate": 30, "gpu-ranks 2": 4, "gpu-ranks 4": 4, "gpu-ranks 2 one": 4,
          "gpu-ranks 4 one": 4, "gpu-ranks 2 die": 4, "memcheck examples": 15,
          "memcheck gpu-test": 10, "racecheck examples": 10, "racecheck gpu-test": 5}
# For everything; no step begins with less than LEAST left.
BUDGET, LEAST = 465, 3
# What the driver of the rehearsal calls its GPU (tests/rehearsal).
DOUBLE = "test double"
# Each may be there as either; the programs prefer the first.
LIBRARIES = [("libnvrtc.so.13", "libnvrtc.so.12"), ("libnccl.so.2",),
             ("libcublasLt.so.13", "libcublasLt.so.12"), ("libcupti.so.13", "libcupti.so.12")]
# Seconds in which a process that is killed should be gone.
GRACE = 3
# How much of a failing step's log is in the result; all of it is in the archive.
LOG_BYTES = 20000


def text(said):
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""


def loadable():
    """The names of all libraries that the loader knows without being told where."""
    ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout \
        if ldconfig else ""
    return {line.split()[0] for line in listed.splitlines() if "=>" in line}


def add_python_packages(environment):
    """Libraries that are only in a Python's packages, as NCCL often is, for the loader."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    kept = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    folders = kept + [f"{home}/{inside}" for home in homes if home
                      for inside in ("lib64", "extras/CUPTI/lib64")]
    known = loadable()
    for names in LIBRARIES:
        for name in names:
            if name in known or any(os.path.exists(f"{folder}/{name}") for folder in folders):
                break
            found = [each for place in sys.path for each in glob.glob(f"{place}/nvidia/*/lib/{name}")]
            if found:
                if os.path.dirname(found[0]) not in kept:
                    kept.append(os.path.dirname(found[0]))
                break
    if kept:
        environment["LD_LIBRARY_PATH"] = ":".join(kept)


def hold_gpus():
    """Open files of the GPUs. Where nobody has one open the driver shuts the GPU down, and
    starting it again takes each process seconds (NVIDIA's "Driver Persistence")."""
    held = []
    for path in sorted(glob.glob("/dev/nvidia[0-9]*")):
        try:
            held.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass  # a GPU of somebody else's
    return held


class Run:
    def __init__(self, binaries, bundles, results):
        self.bin, self.bundles, self.results = binaries, bundles, results
        self.work = tempfile.mkdtemp(prefix="mgpu-gpu-")
        self.started = time.monotonic()
        self.held = hold_gpus()
        self.slack = 1
        self.environment = {**os.environ, "MGPU_REQUIRE_GPU": "1",
                            "MGPU_DB": f"{self.work}/t.db"}
        add_python_packages(self.environment)
        self.result = {"passed": True, "complete": True, "seconds": 0, "held": len(self.held),
                       "steps": []}
        self.path = None
        self.is_double = False

    def left(self, step):
        """Seconds until `step` must have ended."""
        most = 0
        for name, seconds in LIMITS.items():
            most += seconds
            if name == step:
                break
        return min(most, BUDGET) * self.slack - (time.monotonic() - self.started)

    def call(self, limit, command):
        """The exit code (none: it did not end in time), and the two streams."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace",
                                   env=self.environment, start_new_session=True)
        try:
            out, error = process.communicate(timeout=limit)
            return process.returncode, out, error
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        try:
            out, error = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired as late:  # stuck in a driver, which no signal ends
            out, error = (text(each) for each in (late.stdout, late.stderr))
        return None, out, error

    def step(self, name, command, skips=(), no_tool=None, read=None):
        """Runs one step. `read` makes of its output what the result keeps; it is skipped with an
        exit code of `skips`, or one that is not 0 where it says `no_tool`."""
        limit = self.left(name)
        if limit < LEAST:
            return self.note({"step": name, "status": "not_run"}, "")
        start = time.monotonic()
        code, out, error = self.call(limit, command)
        line = {"step": name, "status": "passed", "seconds": round(time.monotonic() - start, 1)}
        said = [each for each in (out + error).splitlines() if no_tool and no_tool in each.lower()]
        if code is None:
            line["status"] = "timed_out"
        elif code in skips or (code != 0 and said):
            line["status"] = "skipped"
            line["skipped"] = (said or error.strip().splitlines() or ["it says not why"])[-1]
        elif code != 0:
            line.update(status="failed", exit_code=code)
        if read and line["status"] != "skipped":
            try:
                read(out, line)
            except (ValueError, KeyError, OSError, TypeError, AttributeError) as problem:
                line["unreadable"] = repr(problem)
                if line["status"] == "passed":
                    line["status"] = "failed"
        return self.note(line, out + error)

    def note(self, line, log):
        self.result["steps"].append(line)
        if line["status"] == "failed":
            self.result["passed"] = False
        if line["status"] in ("not_run", "timed_out"):
            self.result["complete"] = False
        with open(f"{self.work}/{len(self.result['steps']):02}.log", "w", encoding="utf-8") as file:
            file.write(f"{line}\n{log}")
        print(json.dumps(line), flush=True)
        if line["status"] in ("failed", "timed_out"):
            line["log"] = log[-LOG_BYTES:]
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
        logs = self.path.removesuffix(".json") + "-logs.tar.gz"
        with tarfile.open(logs + ".new", "w:gz") as archive:
            for path in sorted(glob.glob(f"{self.work}/*.log")):
                archive.add(path, os.path.basename(path))
        os.replace(logs + ".new", logs)

    def find_gpu(self):
        """Names the result after the GPU; exits with 3 without one."""
        start = time.monotonic()
        code, out, error = self.call(30, [f"{self.bin}/mgpu-tune", "doctor", "--json"])
        try:
            doctor = json.loads(out)
            name = doctor["gpus"][0]["name"]
        except (ValueError, KeyError, IndexError, TypeError):
            print(f"no GPU (doctor: exit code {code}): {error.strip()}", file=sys.stderr)
            sys.exit(3)
        self.result["doctor"] = doctor
        self.result["date"] = str(datetime.date.today())
        self.is_double = DOUBLE in name
        if self.is_double:
            # The limits matter only in that they work, on any machine.
            self.slack = 6
            self.result["rehearsal"] = "no GPU: a test double; no figure here means anything"
            if os.path.realpath(self.results) == os.path.realpath(RESULTS):
                sys.exit(f"'{name}' is not a GPU: its results do not go to {RESULTS}; name another folder")
        gpu = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        os.makedirs(self.results, exist_ok=True)
        self.path = f"{self.results}/{gpu}-{self.result['date']}.json"
        self.note({"step": "doctor", "status": "passed",
                   "seconds": round(time.monotonic() - start, 1)}, out + error)

    def lines(self, key):
        """A reader that keeps each line of JSON under `key`."""
        def read(out, line):
            found = []
            for each in out.splitlines():
                if each.startswith("{"):
                    try:
                        found.append(json.loads(each))
                    except ValueError:  # the last one of a step that was ended
                        if line["status"] != "timed_out":
                            raise
            self.result.setdefault(key, []).extend(found)
            wrong = [each for each in found if each.get("ok") is False]
            if wrong:
                line["failed"] = [" ".join(str(each[name]) for name in ("example", "entry", "form", "target", "tool")
                                           if name in each) for each in wrong]
                if line["status"] == "timed_out":
                    line.update(status="failed", timed_out=True)
                    self.result["complete"] = False
            if not found:
                raise ValueError("it printed no result")
            if any(each.get("complete") is False for each in found):
                self.result["complete"] = False
                line["incomplete"] = sum(each.get("complete") is False for each in found)
        return read

    def examples(self):
        # Products by each form, then the examples.
        self.step("examples", [sys.executable, f"{HERE}/examples.py", f"{self.bin}/mgpu-tune",
                               self.bundles, "2"], read=self.lines("examples"))

    def tests(self):
        path = f"{self.work}/gpu-test.json"

        def read(out, line):
            if line["status"] == "timed_out":
                line["failed"] = sorted(set(re.findall(r"^\[  FAILED  \] ([\w./]+)", out, re.M)))
                line["running"] = (re.findall(r"^\[ RUN      \] (\S+)", out, re.M) or ["none"])[-1]
                if line["failed"]:
                    line.update(status="failed", timed_out=True)
                    self.result["complete"] = False
                return
            with open(path, encoding="utf-8") as file:
                full = json.load(file)
            line.update({key: full[key] for key in ("tests", "failures", "errors")})
            line["names"] = {suite["name"]: suite["tests"] for suite in full["testsuites"]}
            tests = {f"{suite['name']}.{test['name']}": test
                     for suite in full["testsuites"] for test in suite["testsuite"]}
            line["failed"] = [name for name, test in tests.items() if "failures" in test]
            # Rules of CUDA's that the double keeps and this driver does not (RulesTest.cpp).
            line["disagreements"] = {name: test["disagrees"] for name, test in tests.items()
                                     if "disagrees" in test}
            if full["tests"] == 0:
                raise ValueError("no test ran")

        test = f"{self.bin}/gpu-test"
        self.step("gpu-test", [test, f"--gtest_output=json:{path}",
                               "--gtest_filter=-LostContexts.*"], read=read)
        # These lose the context of the process they run in.
        for name in LIMITS:
            if name.startswith("LostContexts."):
                self.step(name, [test, f"--gtest_filter={name}"], read=self.count)

    @staticmethod
    def count(out, line):
        # A filter that matches nothing is not a failure to gtest.
        found = re.search(r"Running (\d+) tests? from", out)
        line["tests"] = int(found.group(1)) if found else 0
        failed = sorted(set(re.findall(r"^\[  FAILED  \] ([\w./]+)", out, re.M)))
        if failed:
            line["failed"] = failed
        if line["tests"] == 0 and line["status"] == "passed":
            raise ValueError("no test ran")

    def ranks(self, *kinds):
        for ranks in kinds:
            # 77: the GPUs are too few, or NCCL is too old.
            self.step(f"gpu-ranks {ranks}", [f"{self.bin}/gpu-ranks", *ranks.split()], skips=(77,))

    def first_replays(self):
        def read(out, line):
            self.lines("first_replay")(out, line)
            # Each line has all rounds until then.
            self.result["first_replay"] = self.result["first_replay"][-1:]

        self.step("first replay", [sys.executable, f"{HERE}/first_replay.py",
                                   f"{self.bin}/mgpu-tune", self.bundles], read=read)

    def sanitizers(self):
        found = shutil.which("compute-sanitizer",
                             path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
        # What CUDA answers to a question is not an error of the program that asks.
        more = {"memcheck": ["--report-api-errors", "no"], "racecheck": []}
        for tool, options in more.items():
            if not found:
                for what in ("examples", "gpu-test"):
                    self.note({"step": f"{tool} {what}", "status": "skipped",
                               "skipped": "no compute-sanitizer"}, "")
                continue
            command = [found, "--tool", tool, "--error-exitcode", "1", *options]
            self.step(f"{tool} examples", [
                sys.executable, f"{HERE}/examples.py", "--under", " ".join(command),
                f"{self.bin}/mgpu-tune", self.bundles], skips=(77,), no_tool=NO_TOOL,
                      read=self.lines("sanitizer"))
            self.step(f"{tool} gpu-test", [
                *command, f"{self.bin}/gpu-test",
                "--gtest_filter=Types/Collectives.*/f32:Collectives.A*:Replays.CoverTheWholeGrid"],
                      no_tool=NO_TOOL, read=self.count)

    def benchmarks(self):
        less = ["--seconds", "0", "--rounds", "6", "--nodes", "64"] if self.is_double else []
        self.step("bench-cuda", [
            f"{self.bin}/bench-cuda", *less, "--bandwidth", f"{self.bundles}/elementwise.mgpu",
            "--bandwidth-seconds", "3" if self.is_double else "15"], read=self.lines("bench"))

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
        judged("elementwise kernels reach 0.92 of the copy within the GPU", min(shares, default=None),
               lambda share: share >= 0.92)
        spans = [each["over_one_stream"] for each in lines if each["part"] == "span"]
        judged("the GPU takes no longer for a replay than for launches into a stream",
               max(spans, default=None), lambda ratio: ratio <= 1)
        torch = [each["span_over_torch"] for each in self.result.get("torch", [])]
        judged("nor than for torch.cuda.CUDAGraph", max(torch, default=None), lambda ratio: ratio <= 1)

    def torch(self):
        # 77: there is no PyTorch that sees the GPU.
        less = ["64"] if self.is_double else []
        self.step("torch", [sys.executable, f"{HERE}/torch_graphs.py", f"{self.bin}/bench-cuda", *less],
                  skips=(77,), read=self.lines("torch"))

    def replays(self):
        count, seconds = (120, 200) if self.is_double else (10000, 6)
        self.step("replays", [sys.executable, f"{HERE}/examples.py", "--replays", str(count),
                                   str(seconds), f"{self.bin}/gpu-replays", f"{self.bin}/mgpu-tune",
                                   self.bundles], read=self.lines("replays"))

    def tune(self):
        def read(out, _):
            self.result["tune"] = json.loads(out)

        budget = "6s" if self.is_double else "14s"
        self.step("tune", [f"{self.bin}/mgpu-tune", "tune", f"{self.bundles}/mlp-main.mgpu",
                               "--target", "cuda:0/4", "--budget", budget, "--json"], read=read)

    def profile(self):
        def read(out, _):
            profile = json.loads(out)
            self.result["profile"] = {key: profile.get(key) for key in
                                      ("timed_by", "device_span_us", "overlap_percent", "nodes")}

        self.step("profile", [f"{self.bin}/mgpu-tune", "profile", f"{self.bundles}/digits-eval.mgpu",
                                  "--target", "cuda:0/4", "--repeat", "20", "--json"], read=read)

    def calibrate(self):
        if self.is_double:
            self.note({"step": "calibrate", "status": "skipped",
                       "skipped": "its kernels take minutes on a processor"}, "")
            return
        node = f"{self.work}/node.json"

        def keep(_out, _line):
            with open(node, encoding="utf-8") as file:
                self.result["calibration"] = json.load(file)

        self.step("calibrate", [f"{self.bin}/mgpu-tune", "calibrate",
                                    f"{self.bundles}/calibrate.mgpu", "--target", "cuda:0/4",
                                    "-o", node], read=keep)

    def all(self):
        self.find_gpu()
        self.examples()
        self.profile()
        self.ranks("1")
        self.tests()
        self.replays()
        self.benchmarks()
        self.first_replays()
        self.torch()
        self.tune()
        self.calibrate()
        self.ranks("2", "4", "2 one", "4 one", "2 die")
        self.sanitizers()
        self.judge()
        self.write()
        counts = {}
        for line in self.result["steps"]:
            counts[line["status"]] = counts.get(line["status"], 0) + 1
        for target in self.result["targets"]:
            print(json.dumps(target))
        print(f"{counts}, {self.result['seconds']} s, complete: {self.result['complete']}")
        print(self.path)
        print(f"logs: {self.work}, and beside it")
        print(f"evidence of variants: mgpu-tune db import {self.work}/t.db")
        return 0 if self.result["passed"] else 1


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: run.sh BIN_DIR BUNDLE_DIR [RESULT_DIR]")
    binaries, bundles = (os.path.abspath(each) for each in sys.argv[1:3])
    sys.exit(Run(binaries, bundles, os.path.abspath((sys.argv[3:] or [RESULTS])[0])).all())


if __name__ == "__main__":
    main()
