#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What run.sh does: every step with a limit of its own, all of them within one.

The result, and beside it the logs of all steps, are written anew after each step, so that a
run which is cut off leaves what it has. bench/results/README.md says what is in it.
"""

import argparse
import datetime
import glob
import gzip
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
LIMITS = {"doctor": 10, "examples": 45, "profile": 6, "gpu-ranks 1": 8, "large": 80, "decode": 28,
          "rates": 16, "gpu-test": 25, "LostContexts.AFaultIsSaid": 6,
          "LostContexts.OneThatDoesNotEndIsGivenUp": 6, "bench-cuda": 26, "calibrate": 20, "predict": 6,
          "tune": 28, "replays": 28, "first replay": 8, "torch": 10, "dumps": 12, "exports": 3,
          "gpu-ranks 2": 3, "gpu-ranks 4": 3, "gpu-ranks 2 one": 3, "gpu-ranks 4 one": 3, "gpu-ranks 2 die": 3,
          "memcheck examples": 7, "memcheck gpu-test": 6, "racecheck examples": 5, "racecheck gpu-test": 4}
# For everything; no step begins with less than LEAST left.
BUDGET, LEAST = 410, 3
# That elementwise kernels should have of the rate of the copy within the GPU, and what they must.
COPY_GOAL, COPY_LEAST = 0.92, 0.88
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


def card():
    """What NVIDIA's own tool says of the GPUs now: driver, limits, clocks; nothing is changed."""
    asked = "name,driver_version,power.limit,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,temperature.gpu"
    try:
        return subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv"], capture_output=True, text=True,
                              timeout=10, check=False).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []


class Run:
    def __init__(self, binaries, bundles, results, only=(), budget=None, cases=()):
        self.bin, self.bundles, self.results = binaries, bundles, results
        self.only, self.budget, self.cases = only, budget or BUDGET, cases
        # Steps that are named share what there is; all of them have their limits.
        self.scale = self.budget / (sum(LIMITS[name] for name in LIMITS if self.wants(name)) if only else BUDGET)
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

    def wants(self, step):
        """Whether the step was asked for: by its name, or the first words of it."""
        return not self.only or step == "doctor" or any(f"{step} ".startswith(f"{each} ") for each in self.only)

    def left(self, step):
        """Seconds until `step` must have ended."""
        most = 0
        for name, seconds in LIMITS.items():
            most += seconds * self.scale if self.wants(name) else 0
            if name == step:
                break
        return min(most, self.budget) * self.slack - (time.monotonic() - self.started)

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
        if not self.wants(name):
            return None
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

    def keep_database(self):
        """What is known of variants and tuned now, beside the result."""
        try:
            with open(f"{self.work}/t.db", "rb") as file, \
                    gzip.open(self.path.removesuffix(".json") + ".db.gz", "wb") as out:
                shutil.copyfileobj(file, out)
        except OSError as problem:
            print(f"the database is not kept: {problem}")

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
        self.result["card"] = [card()]
        self.result["date"] = str(datetime.date.today())
        self.is_double = DOUBLE in name
        if self.is_double:
            # The limits matter only in that they work, on any machine.
            self.slack = 6 if self.budget == BUDGET else 1
            self.result["rehearsal"] = "no GPU: a test double; no figure here means anything"
            if os.path.realpath(self.results) == os.path.realpath(RESULTS):
                sys.exit(f"'{name}' is not a GPU: its results do not go to {RESULTS}; name another folder")
        gpu = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        os.makedirs(self.results, exist_ok=True)
        again = "-again" if self.only else ""
        self.path = f"{self.results}/{gpu}-{self.result['date']}{again}.json"
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
                line["failed"] = [" ".join(str(each[name]) for name in ("example", "entry", "case", "model", "form", "target", "tool", "export", "dump")
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
            if not self.wants(f"{tool} examples") and not self.wants(f"{tool} gpu-test"):
                continue
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
        less = ["--seconds", "0", "--rounds", "6", "--nodes", "64"] if self.is_double else ["--seconds", "0.3"]
        self.step("bench-cuda", [
            f"{self.bin}/bench-cuda", *less, "--bandwidth", f"{self.bundles}/elementwise.mgpu",
            "--bandwidth-seconds", "3" if self.is_double else "8"], read=self.lines("bench"))

    def seconds(self, step):
        """What a step that minds the time itself is told, so that it ends before it is ended."""
        return f"{max(self.left(step) - 2, 0.5):.1f}"

    def large(self):
        # 77: there is no NumPy.
        self.step("large", [sys.executable, f"{HERE}/large.py", f"{self.bin}/gpu-replays", self.bundles,
                            self.seconds("large"), *self.cases], skips=(77,), read=self.lines("large"))
        self.step("decode", [sys.executable, f"{HERE}/decode_steps.py", f"{self.bin}/gpu-replays",
                             f"{self.bin}/mgpu-tune", self.bundles, self.seconds("decode")], skips=(77,),
                  read=self.lines("decode"))
        # 77: there is no PyTorch that sees the GPU.
        self.step("rates", [sys.executable, f"{HERE}/torch_rates.py", self.seconds("rates"),
                            *(["less"] if self.is_double else [])], skips=(77,), read=self.lines("rates"))

    def begin_exports(self):
        """In the background, with few threads, as it needs no GPU: the first steps measure nothing."""
        self.exporting = None
        if self.wants("exports"):
            out = open(f"{self.work}/exports.txt", "w", encoding="utf-8")  # pylint: disable=consider-using-with
            self.exporting = subprocess.Popen(
                ["nice", sys.executable, f"{HERE}/exports.py", self.path.removesuffix(".json") + "-exports.tar.gz"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=os.environ, start_new_session=True)

    def exports(self):
        if not self.exporting:
            return
        line = {"step": "exports", "status": "passed"}
        try:
            self.exporting.wait(max(self.left("exports"), 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(self.exporting.pid, signal.SIGKILL)
            line["status"] = "timed_out"
        with open(f"{self.work}/exports.txt", encoding="utf-8", errors="replace") as file:
            said = file.read()
        try:
            self.lines("exports")(said, line)
        except ValueError as problem:
            line["unreadable"] = repr(problem)
        if line["status"] == "passed" and all(each["ok"] is None for each in self.result.get("exports", [])):
            line.update(status="skipped", skipped="neither PyTorch nor JAX is there")
        self.note(line, said)

    def dumps(self):
        self.step("dumps", [sys.executable, f"{HERE}/dumps.py", self.path.removesuffix(".json") + "-dumps.tar.gz",
                            f"{self.bin}/mgpu-tune", self.bundles], skips=(77,), read=self.lines("dumps"))

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
        judged(f"elementwise kernels reach {COPY_LEAST} of the copy within the GPU (goal {COPY_GOAL})",
               min(shares, default=None), lambda share: share >= COPY_LEAST)
        spans = [each["over_one_stream"] for each in lines if each["part"] == "span"]
        judged("the GPU takes no longer for a replay than for launches into a stream",
               max(spans, default=None), lambda ratio: ratio <= 1)
        torch = [each["span_over_torch"] for each in self.result.get("torch", [])]
        judged("nor than for torch.cuda.CUDAGraph", max(torch, default=None), lambda ratio: ratio <= 1)
        products = [each["share_of_bare"] for each in self.result.get("large", [])
                    if each["case"] == "product-bf16" and "share_of_bare" in each]
        judged("a product's node reaches 0.97 of a bare cublasLtMatmul", min(products, default=None),
               lambda share: share >= 0.97)
        steps = [each["span_us"][0] for each in self.result.get("decode", [])
                 if each["model"] == "decode-16" and "span_us" in each]
        most = 795 if "H200" in str(self.result["doctor"]["gpus"][0]["name"]) else 1140
        judged(f"a step of decoding takes less than {most} us", min(steps, default=None), lambda us: us < most)

    def torch(self):
        # 77: there is no PyTorch that sees the GPU.
        less = ["64"] if self.is_double else []
        self.step("torch", [sys.executable, f"{HERE}/torch_graphs.py", f"{self.bin}/bench-cuda", *less],
                  skips=(77,), read=self.lines("torch"))

    def replays(self):
        count, seconds = (120, 200) if self.is_double else (10000, 2)
        self.step("replays", [sys.executable, f"{HERE}/examples.py", "--replays", str(count),
                                   str(seconds), f"{self.bin}/gpu-replays", f"{self.bin}/mgpu-tune",
                                   self.bundles], read=self.lines("replays"))

    def tune(self):
        """A kernel whose default is not its best, tuned; then both replayed in turn."""
        bundle, stats = f"{self.bundles}/large-transpose.mgpu", {}

        def read(out, _):
            self.result["tune"] = json.loads(out)
            stats["found"] = True

        # The comparison behind the search opens ten processes.
        budget = "6s" if self.is_double else "9s"
        self.step("tune", [f"{self.bin}/mgpu-tune", "tune", bundle, "--target", "cuda:0", "--budget", budget,
                           "--json"], read=read)
        left = self.left("tune")
        if not stats or left < 1:
            return
        code, out, error = self.call(left, [f"{self.bin}/gpu-replays", "spans", "30", "1", "--", bundle,
                                            f"tuned:{bundle}"])
        lines = [json.loads(each) for each in out.splitlines() if each.startswith("{")]
        self.result["tuned"] = lines or [{"error": f"exit code {code}: {error[-500:]}"}]
        self.write()

    def profile(self):
        def read(out, _):
            profile = json.loads(out)
            self.result["profile"] = {key: profile.get(key) for key in
                                      ("timed_by", "device_span_us", "overlap_percent", "nodes")}

        self.step("profile", [f"{self.bin}/mgpu-tune", "profile", f"{self.bundles}/digits-eval.mgpu",
                                  "--target", "cuda:0/4", "--repeat", "20", "--json"], read=read)

    def calibrate(self):
        if self.is_double:
            for step in ("calibrate", "predict"):
                if self.wants(step):
                    self.note({"step": step, "status": "skipped",
                               "skipped": "its kernels take minutes on a processor"}, "")
            return
        node = f"{self.work}/node.json"

        def keep(_out, _line):
            with open(node, encoding="utf-8") as file:
                self.result["calibration"] = json.load(file)

        self.step("calibrate", [f"{self.bin}/mgpu-tune", "calibrate",
                                    f"{self.bundles}/calibrate.mgpu", "--target", "cuda:0/4",
                                    "-o", node], read=keep)
        if os.path.exists(node):
            # What was measured already, by kernels that `calibrate` does not time.
            self.step("predict", [sys.executable, f"{HERE}/large.py", "--predict", f"{self.bin}/mgpu-tune",
                                  self.bundles, node], read=self.lines("calibrated"))
        elif self.wants("predict"):
            self.note({"step": "predict", "status": "skipped", "skipped": "nothing was calibrated"}, "")

    def all(self):
        self.find_gpu()
        self.begin_exports()
        self.examples()
        self.profile()
        self.ranks("1")
        self.large()
        self.tests()
        self.benchmarks()
        self.calibrate()
        self.tune()
        self.replays()
        self.first_replays()
        self.torch()
        self.dumps()
        self.exports()
        self.ranks("2", "4", "2 one", "4 one", "2 die")
        self.sanitizers()
        self.judge()
        self.result["card"].append(card())
        self.write()
        self.keep_database()
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
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    parser.add_argument("binaries", metavar="BIN_DIR")
    parser.add_argument("bundles", metavar="BUNDLE_DIR")
    parser.add_argument("results", metavar="RESULT_DIR", nargs="?", default=RESULTS)
    parser.add_argument("--only", metavar="STEP,...", help="these steps alone, which share the time there is")
    parser.add_argument("--budget", metavar="SECONDS", type=float, help=f"for everything (default {BUDGET})")
    parser.add_argument("--cases", metavar="CASE,...", default="", help="of the step large, these cases alone")
    given = parser.parse_args()
    only = [each for each in (given.only or "").split(",") if each]
    unknown = [each for each in only if not any(f"{step} ".startswith(f"{each} ") for step in LIMITS)]
    if unknown:
        sys.exit(f"no such step: {', '.join(unknown)}; there are {', '.join(LIMITS)}")
    binaries, bundles, results = map(os.path.abspath, (given.binaries, given.bundles, given.results))
    sys.exit(Run(binaries, bundles, results, only, given.budget,
                 [each for each in given.cases.split(",") if each]).all())


if __name__ == "__main__":
    main()
